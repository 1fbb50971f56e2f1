"""The search graph: nodes, selection, expansion, backup, repetition, reuse. README.md lists the modules."""

from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(__name__, {"Tree": "variant_ai.core.search.tree.game_tree"})
