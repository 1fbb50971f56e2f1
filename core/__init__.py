"""Everything that variants share: rules, encoding, nets, data, training. It names no variant."""
