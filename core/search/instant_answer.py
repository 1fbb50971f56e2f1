"""What an evaluator must be and say for a search to go on with it."""

from __future__ import annotations

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import Evaluation


def check_answer(answer: Evaluation, rows: int, actions: int) -> None:
    """Raises DataError where an answer to `rows` positions is not of their number."""
    if answer.value.shape != (rows,) or answer.policy.shape != (rows, actions):
        raise DataError(
            f"the evaluator's answer to {rows} positions has values {answer.value.shape} and "
            f"policy {answer.policy.shape}; ({rows},) and ({rows}, {actions}) are needed"
        )
