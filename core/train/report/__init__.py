"""Reports of runs: the model card, the HTML page and its pictures."""
