"""Errors come back whole from the processes that raise them."""

from __future__ import annotations

import pickle

import pytest

from variant_ai.specs.betza import parse_betza
from variant_ai.specs.errors import SpecError, UnknownNameError, VariantAIError


def betza_error() -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_betza("nX")
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("variant", "xianqi", ["xiangqi", "chess"]),
        SpecError("too wide", "my.yaml:1:2"),
        betza_error(),
    ],
)
def test_errors_are_pickled(error: VariantAIError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
