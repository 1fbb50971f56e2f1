"""Crazyhouse: a reader of its game files, and games to begin with."""
