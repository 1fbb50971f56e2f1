"""Fetching published archives of games."""
