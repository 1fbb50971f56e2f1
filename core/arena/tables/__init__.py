"""Results of matches in numbers.

| module | content |
| --- | --- |
| `elo` | Elo differences and ratings |
| `sprt` | the sequential test |
| `crosstable` | tables as text, CSV, JSON and HTML |
"""
