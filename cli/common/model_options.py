"""Command-line options that follow from the fields of a pydantic model.

    @click.command(
        cls=ModelCommand,
        model="variant_ai.core.arena.match.match_settings:MatchSettings",
        options={"--games": "games", "--openings FILE": "openings.file"},
    )
    def command(given: dict[str, Any]) -> None: ...

Type, range, default and help of an option are those of the field. A model can name the options itself:
`json_schema_extra={"option": "--games"}` of a field, with `"usual"` for what is taken without the
option if that is not the field's default.

The command gets the values that were given as the mapping `given`, nested as in the model:
`{"openings": {"file": "lines.pgn"}}`. The model is imported when the command is run or its help is
shown, so the module of the command stays quick to import.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import click

from variant_ai.cli.common.options import FiniteRange

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


class ModelCommand(click.Command):
    """A command with options of a model."""

    def __init__(
        self,
        *args: Any,
        model: str,
        options: Mapping[str, str] | None = None,
        without: Collection[str] = (),
        before: str | None = None,
        **kwargs: Any,
    ) -> None:
        """model: `module:Model`; options: `--option METAVAR` -> path of a field, by default the
        options that the fields name, except fields in `without`. before: the own parameter that
        they come before, by default the last."""
        super().__init__(*args, **kwargs)
        self._model = model
        self._options = options
        self._without = without
        self._before = before
        self._fields: tuple[str, ...] | None = None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Parameters of the command. The first call imports the model and adds its options."""
        if self._fields is None:
            model = pkgutil.resolve_name(self._model)
            options = self._options
            if options is None:
                extras = {name: _extra(field) for name, field in model.model_fields.items()}
                options = {one["option"]: name for name, one in extras.items() if "option" in one}
            options = {text: path for text, path in options.items() if path not in self._without}
            self._fields = tuple(options.values())
            names = [param.name for param in self.params]
            place = -1 if self._before is None else names.index(self._before)
            self.params[place:place] = [_option(*option, model) for option in options.items()]
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with `given`."""
        given: dict[str, Any] = {}
        for path in self._fields or ():
            value = ctx.params.pop(path)
            if value is not None:
                *groups, name = path.split(".")
                inner = given
                for group in groups:
                    inner = inner.setdefault(group, {})
                inner[name] = value
        ctx.params["given"] = given
        return super().invoke(ctx)


def _extra(field: FieldInfo) -> Mapping[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _option(text: str, path: str, model: type[BaseModel]) -> click.Option:
    *groups, name = path.split(".")
    for group in groups:
        model = model.model_fields[group].annotation  # type: ignore[assignment]
    field = model.model_fields[name]
    flag, _, metavar = text.partition(" ")
    meaning = field.description or name
    about = f"{meaning[0].upper()}{meaning[1:].removesuffix('.')}."
    usual = _extra(field).get("usual", field.default)
    if usual not in (None, "", ()) and not isinstance(usual, bool):
        shown = " ".join(map(str, usual)) if isinstance(usual, tuple) else usual
        about += f"  [default: {shown}]"
    kind = _kind(field.annotation, field.metadata)
    synonyms: dict[str, str] = _extra(field).get("synonyms", {})
    if synonyms:
        kind = click.Choice([*kind.choices, *synonyms])
    # An option with a `flag_value`, even None, could not have a value that begins with a hyphen.
    how: dict[str, Any] = {"type": kind}
    if kind is bool:
        how = {"is_flag": True, "flag_value": field.default is not True}
    option = click.Option(
        [flag],
        **how,
        default=None,
        metavar=metavar or None,
        help=about,
        callback=lambda _context, _option, given: (
            synonyms.get(given, given) if isinstance(given, str) else given
        ),
    )
    option.name = path
    return option


def _kind(kind: Any, rules: Iterable[Any]) -> Any:
    """Return the type for click of an option of this type."""
    if NoneType in get_args(kind):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    parts = get_args(kind)
    if get_origin(kind) is Annotated:
        return _kind(parts[0], _flat(parts[1:]))
    if get_origin(kind) is Literal:
        return click.Choice(parts)
    if get_origin(kind) is tuple:
        return tuple(_kind(part, ()) for part in parts)
    if kind is Path:
        return click.Path(path_type=Path)
    bounds = {
        word: value
        for rule in rules
        for word in ("ge", "gt", "le", "lt")
        if (value := getattr(rule, word, None)) is not None
    }
    if kind in (int, float):
        return (click.IntRange if kind is int else FiniteRange)(
            min=bounds.get("gt", bounds.get("ge")),
            max=bounds.get("lt", bounds.get("le")),
            min_open="gt" in bounds,
            max_open="lt" in bounds,
        )
    return kind


def _flat(rules: Iterable[Any]) -> list[Any]:
    """Rules of annotations, those of pydantic's `Field` taken out of it."""
    return [inner for rule in rules for inner in getattr(rule, "metadata", [rule])]
