"""The board in the browser: a web server whose computation is done by worker processes.

README.md lists the modules in reading order; docs/web.md is the manual.
"""
