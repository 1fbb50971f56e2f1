"""Players of matches.

| module | content |
| --- | --- |
| `player` | limits and clocks, the interface of players, the random player |
| `player_spec` | descriptions of players, as text or YAML; advice on programs that play by other rules |
| `net_player` | a net with search settings as a player |
"""
