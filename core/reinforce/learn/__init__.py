"""Learning from the games of a run. In reading order:

replay_window    the newest positions
window_training  a generation's steps on them
"""
