"""Commands that train, measure and export nets."""
