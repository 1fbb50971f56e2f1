"""Many games searched at once with shared batches, for self-play. In reading order:

forest_search       `ForestSearch`, the interface
forest_arrays       memory of all trees
forest_kernels      the compiled calls for all trees
root_moves          noise, halving, the move played, the policy target
halving             the schedule of sequential halving
random_numbers      a generator for each game
"""
