"""The conformance kit as a plugin's tests use it."""

from __future__ import annotations

import re

import pytest

from variant_ai import testing
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.testing import variant_check
from variant_ai.testing import Report, check_spec


@pytest.mark.parametrize("name", testing.__all__)
def test_every_name_can_be_imported_and_is_described(name: str) -> None:
    found = getattr(testing, name)
    home = getattr(found, "__module__", found.__name__)
    assert home.startswith("variant_ai.core.testing.")
    assert found.__doc__
    assert re.search(rf"\b{name}\b", testing.__doc__ or "")


def test_the_old_name_of_the_kit_still_works() -> None:
    from variant_ai.core import testing as old

    with pytest.warns(DeprecationWarning, match=r"variant_ai\.testing\.check_search"):
        assert old.check_search is testing.check_search


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'check_nothing'"):
        testing.check_nothing  # noqa: B018


def test_the_kit_runs_all_checks_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load_spec(builtin_specs()["dobutsu"])
    monkeypatch.setattr(variant_check, "check_export", lambda spec: Report("net", spec.variant))
    started: list[str] = []
    reports = check_spec(spec, 20, seed=1, on_start=started.append)
    assert started == [report.check for report in reports]
    assert started == ["rules", "game ends", "encoding", "net"]
    assert [report.verdict for report in reports] == ["agrees"] * 4


def test_checks_that_do_not_apply_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load_spec(builtin_specs()["dobutsu"]).model_copy(update={"fairy": None})
    monkeypatch.setattr(variant_check, "check_export", lambda spec: Report("net", spec.variant))
    reports = check_spec(spec, 5, seed=1)
    assert [report.verdict for report in reports] == ["skipped", "skipped", "agrees", "agrees"]
    assert "`fairy:`" in reports[0].skipped
