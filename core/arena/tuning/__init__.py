"""Tuning of search settings by matches.

| module | content |
| --- | --- |
| `surrogate` | a Gaussian process over the results of trials |
| `search_tuning` | trials, finals and the test |
| `tuning_picture` | picture of a tuning |
"""
