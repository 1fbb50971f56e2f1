"""One run: settings, data, initial weights, checkpoints, log, the published net."""
