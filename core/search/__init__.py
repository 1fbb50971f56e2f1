"""Monte-Carlo graph search: one for every variant, over compiled arrays.

The room knows games through `Rules`, encoders and `Evaluator` alone.
"""
