"""Results of matches in numbers: Elo, SPRT, crosstables, ratings."""
