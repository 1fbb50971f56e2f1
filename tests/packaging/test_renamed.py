"""Modules and names that have moved can be imported by their old names, with a warning."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from variant_ai.core.renamed import renamed_modules

IMPORT_ALL = """
import importlib, sys, warnings
from variant_ai.core.renamed import renamed_modules
warnings.simplefilter("ignore")
for old, new in renamed_modules().items():
    assert importlib.import_module(old) is importlib.import_module(new), old
print(len(renamed_modules()))
"""


def test_every_old_name_gives_the_new_module() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


@pytest.mark.parametrize(
    "name",
    ["variant_ai.specs.errors", "variant_ai.core.data.record", "variant_ai.core.search.params"],
)
def test_the_old_name_warns(name: str) -> None:
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match="is now variant_ai"):
        old = importlib.import_module(name)
    assert old is importlib.import_module(renamed_modules()[name])


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("specs", "VariantAIError"),
        ("specs", "load_spec"),
        ("core.spec", "SpecError"),
        ("core.rules.kernel", "KernelRules"),
        ("core.rules.fairy", "FairyRules"),
        ("core.data.store", "Store"),
        ("core.search.tree", "Tree"),
    ],
)
def test_a_package_that_was_a_module_has_its_names(package: str, name: str) -> None:
    module = importlib.import_module(f"variant_ai.{package}")
    with pytest.warns(DeprecationWarning, match=f"{package}.{name} is now variant_ai"):
        assert callable(getattr(module, name))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = module.nonsense


def test_names_that_never_were_stay_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("variant_ai.specs.nonsense")
