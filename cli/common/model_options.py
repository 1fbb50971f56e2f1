"""Command-line options that follow from the fields of a pydantic model.

    @click.command(
        cls=ModelCommand,
        model="variant_ai.core.arena.match.match_settings:MatchSettings",
        options={"--games": "games", "--openings FILE": "openings.file"},
    )
    def command(given: dict[str, Any]) -> None: ...

Type, range, default and help of an option are those of the field. The command gets the values that
were given as the mapping `given`, nested as in the model: `{"openings": {"file": "lines.pgn"}}`. The
model is imported when the command is run or its help is shown, so the module of the command stays quick
to import.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

from variant_ai.cli.common.console import FiniteRange

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


class ModelCommand(click.Command):
    """A command with options of a model, before its last own parameter."""

    def __init__(self, *args: Any, model: str, options: Mapping[str, str], **kwargs: Any) -> None:
        """model: `module:Model`; options: `--option METAVAR` -> path of a field."""
        super().__init__(*args, **kwargs)
        self._model = model
        self._options = options
        self._is_complete = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Parameters of the command. The first call imports the model and adds its options."""
        if not self._is_complete:
            self._is_complete = True
            module, _, name = self._model.partition(":")
            model = getattr(importlib.import_module(module), name)
            made = [_option(text, path, model) for text, path in self._options.items()]
            self.params[-1:-1] = made
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with `given`."""
        given: dict[str, Any] = {}
        for path in self._options.values():
            value = ctx.params.pop(path)
            if value is not None:
                *groups, name = path.split(".")
                inner = given
                for group in groups:
                    inner = inner.setdefault(group, {})
                inner[name] = value
        ctx.params["given"] = given
        return super().invoke(ctx)


def _option(text: str, path: str, model: type[BaseModel]) -> click.Option:
    *groups, name = path.split(".")
    for group in groups:
        model = model.model_fields[group].annotation  # type: ignore[assignment]
    field = model.model_fields[name]
    flag, _, metavar = text.partition(" ")
    meaning = field.description or name
    about = f"{meaning[0].upper()}{meaning[1:].removesuffix('.')}."
    if field.default not in (None, "") and not isinstance(field.default, bool):
        about += f"  [default: {field.default}]"
    kind = _kind(field)
    option = click.Option(
        [flag],
        type=None if kind is bool else kind,
        is_flag=kind is bool,
        default=None,
        metavar=metavar or None,
        help=about,
    )
    option.name = path
    return option


def _kind(field: FieldInfo) -> Any:
    """Type of a field for click."""
    kind: Any = field.annotation
    if NoneType in get_args(kind):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    least = next((rule.ge for rule in field.metadata if hasattr(rule, "ge")), None)
    above = next((rule.gt for rule in field.metadata if hasattr(rule, "gt")), None)
    most = next((rule.le for rule in field.metadata if hasattr(rule, "le")), None)
    if kind is int:
        return int if least is most is None else click.IntRange(min=least, max=most)
    if kind is float:
        return FiniteRange(min=above if least is None else least, max=most, min_open=least is None)
    return kind
