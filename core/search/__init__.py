"""Monte-Carlo graph search for every variant, over compiled arrays.

The search uses games only through `Rules`, encoders and `Evaluator`. README.md lists the modules.
"""
