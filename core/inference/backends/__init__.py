"""Evaluators, one module per library that runs nets, and those that need no net."""
