"""Services of the operating system, and helpers unrelated to games. No other room is imported.

In reading order:

files                   writing whole files, errors that name the file, short file names
folders                 cache folders, and temporary ones that are removed even after a kill
processors              number of usable processors
templates               Jinja templates beside the modules that fill them
text_tables             table columns that fit the width of a terminal
closing                 objects with `close` as context managers
missing_packages        packages that may be missing, and how to install them
checked_models          values given by a user, checked by a pydantic model
interrupts              Ctrl-C, SIGTERM and SIGHUP
child_processes         child processes that end with their parent
ray_cluster             worker processes on several machines
compilation_progress    progress of compilation, for the user interface
"""
