"""Files that specs are read from: YAML, and the ini files of Fairy-Stockfish."""
