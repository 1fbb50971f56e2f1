"""What every variant shares: rules, encoding, nets, data, training. It names no variant."""
