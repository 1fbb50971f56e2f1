"""Openings, and games of a player against itself.

| module | content |
| --- | --- |
| `openings` | openings from files, stores, books and nets |
| `generation` | games generated for training: settings, numbering, records |
| `game_generators` | games of a program in threads, of a net in shared batches, of either in several processes |
| `generated_games` | games after their ends: blunders and repeated games dropped, a journal, the store |
| `labelling` | positions of games labelled by a stronger player |
"""
