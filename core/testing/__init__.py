"""Conformance kit: checks that rules, encoders and other parts of a variant must pass."""
