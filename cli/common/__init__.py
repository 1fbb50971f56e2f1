"""Options, tables and errors that several commands share."""
