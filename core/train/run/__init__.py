"""One run: `training_settings`, `run_folder`, `run_log`, `checkpoint`, `initial_weights`, `training_data`,
`plan`, `training_run`.
"""
