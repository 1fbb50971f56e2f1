"""Learning from the games of a run.

window_training  the newest positions, and a generation's steps on them
"""
