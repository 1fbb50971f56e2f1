"""The command line: one file per command, loaded only when the command is called."""
