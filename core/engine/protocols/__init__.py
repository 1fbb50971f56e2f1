"""Protocols of the engine: engine_options (all options), chosen_options (values set by the client),
uci (UCI and its cyclone dialect), ucci, usi (of shogi GUIs)."""
