"""Searches of the rules alone, without the net.

by_checks       at a new leaf: mates by checks alone
material        at a new leaf: material that moves win or lose
shortest_mate   after a proof: a win with fewer plies
"""
