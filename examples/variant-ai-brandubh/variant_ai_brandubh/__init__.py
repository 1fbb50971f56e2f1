"""Brandubh for variant-ai: a game with rules of its own, in plain Python."""
