"""Errors in words, and back whole from the processes that raise them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from variant_ai.core.errors import SpecError, UnknownNameError, VariantAIError, os_reason
from variant_ai.core.spec import parse_spec
from variant_ai.core.spec.betza import parse_betza


def betza_error() -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_betza("nX")
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("variant", "xianqi", ["xiangqi", "chess"], "or a path"),
        SpecError("too wide", "my.yaml:1:2"),
        betza_error(),
    ],
)
def test_errors_are_pickled(error: VariantAIError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "variant: My Chess",
            "1:1: variant: given 'My Chess'; accepted: small letters, digits and `-`",
        ),
        (
            "variant: x\nrules: {engine: My Rules}",
            "2:9: rules.engine: given 'My Rules'; accepted: small letters, digits, `-` and `_`",
        ),
        ("variant: x\nboard: {files: 13}", "2:9: board.files: at most 12 is expected, given 13"),
        ("variant: x\nhands: {order: []}", "2:9: hands.order: a list of at least 1 is expected"),
        ("variant: x\n? [a]\n: 1", "2:3: ('a',): unknown key"),
        ("variant: x\nrules:\n  <<: {fold: 2}", "2:1: rules.fold: unknown key 'fold'"),
    ],
)
def test_a_mistake_is_described_in_the_projects_words(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(f"{text}\nextends: chess\n", "my.yaml")
    assert f"my.yaml:{message}" in str(caught.value)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "gone" / "x.store", f"there is no folder {tmp_path / 'gone'}"),
        (tmp_path / "x.store", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(OSError) as caught:
            path.open()
        assert os_reason(caught.value, path) == message


def test_what_else_is_accepted_stands_last() -> None:
    error = UnknownNameError("variant", "xianqi", ["xiangqi", "chess"], "or a path")
    assert str(error) == (
        "unknown variant 'xianqi'; did you mean 'xiangqi'? accepted: chess, xiangqi, or a path"
    )
