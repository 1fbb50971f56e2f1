"""Measuring nets on stored positions: metrics, calibration, confidence intervals."""
