"""Values that a user gives, checked by a pydantic model.

pydantic is imported at the first check, so that this room needs the standard library alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from variant_ai.core.errors import SettingError, unknown

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound="BaseModel")


def first_fault(error: ValidationError) -> tuple[str, ErrorDetails]:
    """Return the path of the first wrong value, as `board.files` (empty: the whole), and what pydantic
    says of it: `msg` is the reason, `input` the value."""
    fault = error.errors(include_url=False)[0]
    return ".".join(map(str, fault["loc"])), fault


def checked(model: type[M], given: object, where: str) -> M:
    """Make a pydantic model. Raises SettingError with the key and its error."""
    from pydantic import ValidationError

    if not isinstance(given, dict):
        raise SettingError(f"{where}: expected a mapping, not {type(given).__name__}")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        key, first = first_fault(error)
        if first["type"] == "extra_forbidden":
            at = model.model_fields if len(first["loc"]) == 1 else ()
            raise SettingError(f"{where}: {unknown('key', key[:60], sorted(at))}") from error
        if first["type"] == "too_short":
            least, given_items = first["ctx"]["min_length"], first["ctx"]["actual_length"]
            message = f"{where}: {key}: at least {least} are needed, {given_items} given"
            raise SettingError(message) from error
        message = "expected a list" if first["type"] == "tuple_type" else first["msg"]
        message = message.removeprefix("Value error, ")
        raise SettingError(f"{where}: {key}: {message}, given {first['input']!r:.60}") from error
