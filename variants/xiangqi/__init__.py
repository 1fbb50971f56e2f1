"""Xiangqi: readers of its game files, its notations, and games to begin with."""
