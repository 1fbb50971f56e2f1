"""Self-play: a net learns a variant from its own games.

A generation is one round of the loop: games of the current net, training, the next net. In
`core/arena` the word means games made for training, by `variant-ai generate`.

In reading order:

reinforce_settings  the settings of a run, and the searches that they choose
settings_file       the same as YAML
budget              CPU time of a run, its budget of generations and minutes, how much is used up
reinforcement       the loop: games, training, matches, and again
reinforce_folder    the files of a run
games/              who plays the games, on this machine or on a cluster, and how they are kept
window_training     the replay window, and a generation's training on it
ladder/             matches that measure the nets
report/             numbers and curves of generations, and one page with curves and games
"""
