"""Games between players, and what they show.

| folder | content |
| --- | --- |
| `players` | the interface of players, nets as players |
| `programs` | other programs as players |
| `match` | matches, and the threads that play games |
| `tables` | Elo, sequential test, cross tables |
| `games` | openings, games generated for training |
| `tuning` | search settings tuned by matches |
"""
