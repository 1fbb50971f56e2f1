"""Self-play: a net learns a variant from its own games.

A generation is one round of the loop: games of the current net, training, the next net. In
`core/arena` the word means games made for training, by `variant-ai generate`.

In reading order:

reinforce_settings  the settings of a run
settings_file       the same as YAML
chosen_search       the searches that the settings choose
budget              generations and CPU minutes, and how much of them is used up
reinforcement       the loop: games, training, matches, and again
reinforce_folder    the files of a run
games/              who plays the games, and how they are kept
learn/              the replay window, and training on it
ladder/             matches that measure the nets
report/             one page with curves and games
cluster/            players on other machines, by Ray
generation_summary  numbers of a generation
cpu_clock           CPU time of a run
"""
