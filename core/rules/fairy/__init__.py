"""Rules played by Fairy-Stockfish through pyffish, for variants beyond the kernel."""
