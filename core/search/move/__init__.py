"""From a searched tree to a move: limits, clock, choice of the move, variations."""
