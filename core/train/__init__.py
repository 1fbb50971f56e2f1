"""Training: schedules, losses, metrics, checkpoints, the loop, and the reports of a run.

From lowest to highest: `source` and `config` (what a training is given), `schedule`, `device`,
`workers` (processes that train together), `metrics`, `learner` (the net with its loss), `averages`,
`guard`, `window`, `checkpoint`, `start` (what is gone on from), `record`, `assembly`, `trainer` (the
loop), `lr_range`, `baseline`, `evaluation`, `stores` and `plan` (from a request to data and a
configuration), `figures`, `report`, `publish`, `session` (a whole run directory).
"""
