"""One run: `training_settings`, `run_folder`, `checkpoint`, `initial_weights`, `training_data`, `plan`,
`training_run`.
"""
