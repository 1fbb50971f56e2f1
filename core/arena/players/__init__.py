"""Players of matches: the interface, descriptions of players, nets as players."""
