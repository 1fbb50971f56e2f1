"""Openings, and games of a player against itself.

| module | content |
| --- | --- |
| `openings` | openings from files, stores, books and nets |
| `generation` | games generated for training: settings, numbering, records |
| `blunders` | games with blunders, dropped or cut |
| `player_games` | games of a program, in threads |
| `net_games` | games of a net, at once with shared batches |
| `pooled_games` | games in the processes of a pool, on one machine or several |
| `generated_games` | their journal, and the store in the end |
| `labelling` | positions of games labelled by a stronger player |
"""
