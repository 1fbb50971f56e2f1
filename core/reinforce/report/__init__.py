"""The report of a run. In reading order:

generation_statistics  numbers of a generation, and curves over the generations
reinforce_report       the page, with games of some generations as boards
"""
