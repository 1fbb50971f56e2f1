"""The search graph: nodes, selection, descent, backup, repetition, reuse."""
