"""Modules that have moved can be imported by their old names."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from variant_ai.core.renamed import renamed_modules


@pytest.mark.parametrize("new", sorted(set(renamed_modules().values())))
def test_the_new_module_exists(new: str) -> None:
    assert importlib.util.find_spec(new) is not None


@pytest.mark.parametrize(
    "name",
    ["variant_ai.specs.errors", "variant_ai.core.data.record", "variant_ai.core.search.params"],
)
def test_the_old_name_warns_and_gives_the_same_module(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="is now variant_ai"):
        old = importlib.import_module(name)
    assert old is importlib.import_module(renamed_modules()[name])


def test_names_that_never_were_stay_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("variant_ai.specs.nonsense")
