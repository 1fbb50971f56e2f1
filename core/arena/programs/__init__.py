"""Other programs as players: processes and the protocols they speak."""
