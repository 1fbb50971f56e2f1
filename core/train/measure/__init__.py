"""Measuring nets on stored positions: `metrics`, `metric_tables`, `prediction`, `calibration`,
`mate_set`, `evaluation`, `reduced_precision`.
"""
