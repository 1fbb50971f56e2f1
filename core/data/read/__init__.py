"""Reading games: files of every format, headers, legality, import."""
