"""Reports of runs: `model_card`, and `run_report`, an HTML page made by `report_page`."""
