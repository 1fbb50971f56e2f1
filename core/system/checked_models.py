"""Values that a user gives, checked by a pydantic model.

pydantic is imported at the first check, so that this room needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from variant_ai.core.errors import SettingError, unknown

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound="BaseModel")


_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping of words",
    "model": "a mapping of words",
}
"""Expected values by the first word of pydantic's type of an error."""
_BOUNDS = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "multiple_of": "a multiple of {multiple_of}",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
}
"""Expected values by pydantic's type of an error, with the words of its context."""
UNKNOWN_WORD, MISSING = "there is no such word", "a value is needed"


def reason_of(fault: ErrorDetails) -> str:
    """Explain why a value is wrong: `a whole number is expected`."""
    kind = fault["type"]
    if kind == "extra_forbidden":
        return UNKNOWN_WORD
    if kind == "missing":
        return MISSING
    if kind in _BOUNDS:
        bounds = {
            name: f"{bound:.10g}" if isinstance(bound, float) else bound
            for name, bound in fault["ctx"].items()
        }
        return f"{_BOUNDS[kind].format(**bounds)} is expected"
    if kind.endswith(("_type", "_parsing", "_from_float", "_number")):
        expected = _EXPECTED.get(kind.split("_")[0])
        if expected:
            return f"{expected} is expected"
    return fault["msg"].removeprefix("Value error, ")


def first_fault(error: ValidationError) -> tuple[str, str, object]:
    """Return the path of the first wrong value, as `board.files` (empty: the whole), why it is wrong,
    and the value."""
    fault = error.errors(include_url=False)[0]
    keys = [str(key) for key in fault["loc"] if "[" not in str(key)]  # pydantic adds tags of unions
    return ".".join(keys), reason_of(fault), fault["input"]


Place = str | Callable[[Sequence[str | int]], str]
"""Origin of values, for messages; or a function that returns it for the path of a value, such as a file with the line."""


def checked(model: type[M], given: object, origin: Place) -> M:
    """Make a pydantic model. Raises SettingError with the key and its error."""
    from pydantic import ValidationError

    if not isinstance(given, dict):
        where = origin if isinstance(origin, str) else origin(())
        raise SettingError(f"{where}: expected a mapping, not {type(given).__name__}")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        key, reason, value = first_fault(error)
        *outer, word = path = error.errors(include_url=False)[0]["loc"] or ("",)
        where = origin if isinstance(origin, str) else origin(path)
        if reason == UNKNOWN_WORD:
            place = ": ".join([where, ".".join(map(str, outer))]) if outer else where
            known = _fields(model, outer)
            raise SettingError(f"{place}: {unknown('key', str(word)[:60], known)}") from error
        shown = "" if reason == MISSING else f", given {value!r:.60}"
        raise SettingError(f"{where}: {key}: {reason}{shown}") from error


def _fields(model: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """Keys that a model accepts at a path of keys; none if there is no model."""
    from pydantic import BaseModel

    for part in path:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return sorted(model.model_fields)
