"""Commands about variants and their specs."""
