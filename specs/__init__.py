"""Specs that ship with the project: a YAML file per variant, their JSON schema, and a table of names.

The code that reads them is `variant_ai.core.spec`.
"""
