"""Matches: settings, pairings, one game under a referee, the tournament, its record."""
