"""Xiangqi: readers of its game files, notations, sample games and a net."""
