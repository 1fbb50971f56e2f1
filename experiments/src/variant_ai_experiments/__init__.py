"""Experiments of the papers, as a plugin that adds commands to `variant-ai`.

This package uses `variant_ai`; nothing in `variant_ai` imports it. `plugin` lists the commands, each
in a module of its name; the other modules are shared by them.
"""
