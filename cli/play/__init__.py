"""Commands that play and analyse."""
