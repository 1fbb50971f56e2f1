"""Games of self-play. In reading order:

self_play            games of a net with itself, as records
self_play_evaluator  the evaluator of a run's nets
game_supply          where a run gets its games from
game_journal         games on disk until their store is written
"""
