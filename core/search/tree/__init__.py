"""The search graph: nodes, selection, expansion, backup, repetition, reuse. README.md lists the modules."""
