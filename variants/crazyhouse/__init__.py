"""Crazyhouse: a reader of its game files, sample games and a net."""
