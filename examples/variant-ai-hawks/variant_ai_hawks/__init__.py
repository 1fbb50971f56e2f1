"""Hawk chess for variant-ai: a reader of its score sheets, and its own board picture."""
