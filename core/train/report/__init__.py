"""Reports of runs: `run_report`, an HTML page made by `report_page`, and a model card."""
