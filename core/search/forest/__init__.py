"""Many trees searched at once with shared batches."""
