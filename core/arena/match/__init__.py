"""Matches.

| module | content |
| --- | --- |
| `match_settings` | settings of a match, the schedule of its games |
| `referee` | one game, judged from its opening to its end |
| `player_pool` | threads that play games, each with its own players |
| `journal` | finished games on disk |
| `match_record` | finished games as journal entries and PGN, numbers of tables |
| `tournament` | a whole match in a folder |
"""
