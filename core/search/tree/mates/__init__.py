"""Mates that are found by trying moves, without the net.

by_checks       at a new leaf: mates by checks alone
shortest_mate   after a proof: a win with fewer plies
"""
