"""Conformance kit: checks that the rules, encoder and other parts of a variant must pass.

`variant_ai.testing` has its names, for the tests of plugins as much as for ours. Every check
plays random games from a seed and stops at the first difference. Those of a whole variant return a
`Report`, those of one implementation raise AssertionError. Modules in reading order:

    random_games           the report, and random games steered towards what is rare
    rules_conformance      check_rules: moves, checks and FENs against Fairy-Stockfish
    game_conformance       check_game_ends: repetition, chases and move counts against it
    engine_conformance     check_rules_engine: what every rules engine must do, without a judge
    encoding_conformance   check_encoder: planes, actions and codes, there and back
    interface_conformance  check_input_encoder, check_label_encoder, check_network, check_search,
                           check_trainer, check_notation, check_reader: what plugins may bring, by
                           themselves
    strategies             Hypothesis strategies of games, positions, moves and FENs
    variant_check          check_spec: all of these on one spec; check_export: its net as ONNX;
                           check_variant: every room once, in seconds
"""

from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(
    __name__,
    dict.fromkeys(
        (
            "Report",
            "check_encoder",
            "check_game_ends",
            "check_input_encoder",
            "check_label_encoder",
            "check_network",
            "check_rules",
            "check_search",
            "check_spec",
            "check_trainer",
        ),
        "variant_ai.testing",
    ),
)
