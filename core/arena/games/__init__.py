"""Games generated for training, and the openings they start from."""
