"""Rules engine `fairy`: rules by Fairy-Stockfish (pyffish), for variants that the kernel cannot
play.

Modules in reading order:

    fairy_stockfish   pyffish behind a safe interface
    fairy_positions   positions as Fairy-Stockfish keeps them, its moves as move integers
    fairy_rules       `FairyRules`, the implementation of `Rules`
    fairy_workers     child processes that compute positions ahead of time
"""

from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(__name__, {"FairyRules": "variant_ai.core.rules.fairy.fairy_rules"})
