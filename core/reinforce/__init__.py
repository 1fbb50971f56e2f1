"""Self-play: a net learns a variant from its own games. In reading order:

reinforce_settings  the settings of a run, read from YAML
self_play           games of a net with itself, as records
batch_players       players that think about many games at once
net_match           matches of two nets
ladder_record       pairings of a run's nets, and the Elo of its generations
ladder_picture      ladders as pictures
ladder              which nets meet, outside players, the gate
"""
