"""Commands about matches."""
