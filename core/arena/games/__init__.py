"""Openings, and games of a player against itself.

| module | content |
| --- | --- |
| `openings` | openings from files, stores, books and nets |
| `generation` | games generated for training |
| `generated_games` | their journal, and the store in the end |
"""
