"""Protocols of the engine: UCI, UCI-cyclone, UCCI, and the options they set."""
