"""An example plugin of variant-ai: an encoder, a search and a trainer of its own."""
