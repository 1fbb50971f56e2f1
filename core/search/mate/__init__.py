"""Proof of mates: the shortest mate, and a search that looks for one."""
