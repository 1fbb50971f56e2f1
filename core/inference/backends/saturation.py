"""int8 on trial: nets whose int8 answers are wrong on this processor compute in fp32 instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from variant_ai.core.inference.known_answers import METADATA_KEY, KnownAnswers

if TYPE_CHECKING:
    from variant_ai.core.inference.interface import Evaluator
    from variant_ai.core.inference.model_file import ModelFile


def checked_precision(
    evaluator: Evaluator, file: ModelFile, reopen: Callable[[ModelFile, bytes], None]
) -> tuple[str, tuple[str, ...]]:
    """Precision an evaluator ends with, and what to tell the user.

    An evaluator of an int8 file is asked for the answers the file knows. Where it is wrong, the
    file is opened again as fp32: its own weights without the steps to int8, so nothing else need
    lie beside it. `reopen` is given the file and that model.
    """
    text = file.metadata.get(METADATA_KEY)
    if text is None or evaluator.precision != "int8":
        return evaluator.precision, evaluator.notes
    known = KnownAnswers.decode(text, file.path)
    difference = known.difference(evaluator.evaluate)
    if difference <= known.tolerance:
        return evaluator.precision, evaluator.notes
    from variant_ai.core.nets.quantise import float_model

    reopen(file, float_model(file.path))
    note = (
        f"{file.path}: this processor computes int8 wrongly with {evaluator.name} (off by "
        f"{difference:.2f} where {known.tolerance:.2f} is allowed): running in fp32 instead"
    )
    return "fp32", (*evaluator.notes, note)
