"""Many trees searched at once with shared batches. In reading order:

forest_arrays       memory of all trees
shared_batches      evaluation and backup of a batch, for both kinds of forests
forest_search       `ForestSearch`: games of self-play, Gumbel and PUCT
forest_kernels      its compiled calls for all trees
root_moves          noise, halving, the move played, the policy target
improved_policy     the policy that a search improved
halving             the schedule of sequential halving
random_numbers      a generator for each game
position_searches   ordinary searches of many positions, and `analyse_many`, a report for each
position_kernels    their compiled call
"""
