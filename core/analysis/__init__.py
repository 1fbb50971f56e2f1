"""What searches say about games and about themselves: annotated games, experiments."""
