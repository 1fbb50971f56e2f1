"""Drafts of specs for the variants of Fairy-Stockfish, found by asking and probing.

Modules in reading order:

    probe_board    crafted positions, and what Fairy-Stockfish answers about them
    betza_writer   movements as a Betza word
    piece_probe    how a piece moves
    rule_probe     promotions, hands, castling, royal pieces
    end_probe      ends of games
    derivation     `derive`: all of it as a spec, tried in the kernel or on `fairy`
"""
