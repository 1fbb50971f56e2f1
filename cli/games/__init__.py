"""Commands about games: import, fetch, generate, stores, statistics."""
