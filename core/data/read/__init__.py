"""Reading games: files of every format, notations, import.

decoding       text lines in unknown encodings
game_files     plain, compressed and archived files as streams
game_reader    interface of readers, games as they are written, skipped games
pgn            PGN
line_formats   JSON lines, tables, lists of moves
headers        fields of a game from its headers and comments
resolve        from words to legal moves
importer       from files to a store
"""
