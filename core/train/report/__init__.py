"""Reports of runs: `model_card`, and `run_report`, an HTML page."""

from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(__name__, {"model_card": "variant_ai.core.train.report.model_card"})
