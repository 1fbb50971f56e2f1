"""Training: schedules, losses, metrics, checkpoints, the loop, and the reports of a run.

From lowest to highest: `source` and `config` (what a training is given), `schedule`, `device`,
`metrics`, `checkpoint`, `record`, `trainer` (the loop), `baseline`, `evaluation`, `plan` (from a
request to a configuration), `figures`, `report`, `publish`, `session` (a whole run directory).
"""
