"""Games judged by the search, and the speed of the search.

| module | content |
| --- | --- |
| `annotated_game` | every move of a game judged |
| `search_speed` | time of the search and its parts |
"""
