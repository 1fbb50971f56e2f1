"""Writing games as text.

text_output   JSON lines, lists of moves, and the files
pgn_writer    PGN
"""
