"""Drafts of specs for the variants of Fairy-Stockfish, found by asking and probing.

Modules in reading order:

    probe_board    crafted positions, and the answers of Fairy-Stockfish about them
    betza_writer   movements as a Betza word
    piece_probe    how a piece moves
    rule_probe     promotions, hands, castling, royal pieces
    end_probe      ends of games
    spec_draft     all of it in the words of specs
    derivation     `derive`: a draft, perhaps as the child of a shipped spec, tried in the kernel
"""
