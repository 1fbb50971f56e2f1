"""Games between engines: other people's programs, and matches."""
