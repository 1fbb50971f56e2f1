"""Positions and moves as text: FEN with its limits of pieces, and notations."""
