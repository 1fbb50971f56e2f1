"""Rules engine `kernel`: rules at machine speed for every variant whose spec fits into its tables.

Modules in reading order:

    move_programs   movement of a piece from one square, as numbers
    table_layout    the record that compiled functions read, TABLES
    rule_tables     the whole spec compiled into it
    attacks         is a square attacked, is the king in check
    king_safety     is the king safe after a move
    movegen         legal moves
    make_move       the next position and its key
    game_ends       game ends that a position shows
    giving_check    which moves give check
    kernel_rules    `KernelRules`, the Python interface of all this
    perft           counting move sequences, a test of all this
"""

from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(
    __name__,
    {
        "KernelRules": "variant_ai.core.rules.kernel.kernel_rules",
        "is_compiled": "variant_ai.core.rules.kernel.kernel_rules",
    },
)
