"""Training batches from stored games.

split             games for training, validation and test
compiled_replay   from the number of a sample to its arrays, compiled
sampled_games     games of several stores as arrays
value_labels      targets of the value: results, values of searches, or both
sampler           batches in a seeded order
mixture           batches from several samplers by weight
"""
