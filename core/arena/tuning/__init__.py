"""Search settings tuned by matches."""
