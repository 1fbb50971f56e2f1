"""Choice of an evaluator: evaluator_factory (by name), evaluator_timing, saved_choices,
fastest_evaluator (`auto`)."""
