"""Choice of an evaluator: by name, or the fastest one by a short measurement."""
