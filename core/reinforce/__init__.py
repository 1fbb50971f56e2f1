"""Self-play: a net learns a variant from its own games. In reading order:

settings    the settings of a run, read from YAML
"""
