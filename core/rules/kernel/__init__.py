"""Rules compiled from the spec: tables, move generation, making moves, game ends, perft."""
