"""The specs that ship with the project, one YAML file per variant, and their JSON schema.

The code that reads them is `variant_ai.core.spec`.
"""
