"""The loop of a worker process: a JSON line with a question, a JSON line with its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from variant_ai.core.engine.line_io import InputLine, LineWriter
from variant_ai.core.errors import VariantAIError

Action = Callable[[dict[str, Any]], dict[str, Any]]


def answer_questions(
    lines: Iterable[InputLine], write: LineWriter, actions: Mapping[str, Action]
) -> None:
    """Answer a line for each line, until the input ends."""
    for line in lines:
        if write.is_broken:
            return
        if line.text:
            write(json.dumps(answer(json.loads(line.text), actions), ensure_ascii=False))


def answer(question: dict[str, Any], actions: Mapping[str, Action]) -> dict[str, Any]:
    """Answer a question by its `action`: an object with `id`, and `error` if there is no answer."""
    id = question.get("id")
    try:
        return {**actions[str(question["action"])](question), "id": id}
    except VariantAIError as error:
        return {"id": id, "error": str(error)}
    except Exception as error:  # one question must not end the process
        return {"id": id, "error": f"{type(error).__name__}: {error}"}
