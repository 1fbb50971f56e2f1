"""Writing games as PGN and as other text."""
