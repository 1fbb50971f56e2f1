"""Protocol sessions for GUIs, sites and match programs. README.md follows one `go` through the modules.

Nothing heavy is imported before the first handshake is answered: these modules import numpy, rules
and search inside the functions that need them.
"""
