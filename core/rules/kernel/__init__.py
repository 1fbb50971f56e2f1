"""Rules engine `kernel`: rules at machine speed for every variant whose spec fits into its tables."""

from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(
    __name__,
    {
        "KernelRules": "variant_ai.core.rules.kernel.kernel_rules",
        "is_compiled": "variant_ai.core.rules.kernel.kernel_rules",
    },
)
