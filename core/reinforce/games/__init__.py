"""Games of self-play. In reading order:

self_play            games of a net with itself, as records
game_supply          where a run gets its games from
cluster_games        the same from players on other machines, by Ray
game_journal         games on disk until their store is written
"""
