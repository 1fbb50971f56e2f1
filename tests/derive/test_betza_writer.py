"""Words that are written mean the movements they were written for."""

from __future__ import annotations

import pytest

from variant_ai.core.derive.betza_writer import write_betza
from variant_ai.core.errors import SpecError
from variant_ai.core.spec.betza import Movement, parse_betza

WORDS = (
    "fmWfcF K R Q B N BN mRcpR nN nA nZ fmnD fW FfW WfF sW fsW fR fN gQ pR RF KN mNcB CfF R4 B3 NN BW "
    "QN RcpRnN fbR lfF Z H G fhN bsW"
).split()


@pytest.mark.parametrize("word", WORDS)
def test_words_are_written_back(word: str) -> None:
    moves = parse_betza(word)
    assert set(parse_betza(write_betza(moves))) == set(moves)


@pytest.mark.parametrize("word", ["K", "R", "Q", "N", "mRcpR", "nN", "fW", "WfF", "BN"])
def test_usual_pieces_have_their_usual_words(word: str) -> None:
    assert write_betza(parse_betza(word)) == word


def test_a_leap_without_a_letter_is_an_error() -> None:
    with pytest.raises(SpecError, match="1:4 has no letter"):
        write_betza([Movement(1, 4, 1, True, True)])
