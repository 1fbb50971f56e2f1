"""Other programs as players.

| module | content |
| --- | --- |
| `engine_process` | an engine as a subprocess |
| `uci_client` | its protocols UCI, UCCI and UCI-cyclone |
| `xboard_client` | XBoard's protocol |
| `program_player` | an engine as a player of matches |
"""
