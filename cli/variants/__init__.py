"""Commands about variants and their specs.

Modules in reading order:

    variants    `variants`: list them
    spec        `spec`: show, check and compare specs, and write their schema
    spec_text   specs as text, drawings and YAML
    perft       `perft`: count move sequences
    plugin      `plugin new`: begin a package with a variant
"""
