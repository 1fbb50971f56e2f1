"""Games: records, readers of files, the game store, and the sampler that trains from it."""
