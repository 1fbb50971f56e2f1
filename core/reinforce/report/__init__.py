"""The report of a run. In reading order:

generation_curves  curves over the generations
example_games      games of some generations, as boards
reinforce_report   the page
"""
