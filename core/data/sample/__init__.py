"""Training batches sampled from stored games."""
