"""The conformance kit of encodings, for every built-in spec and for faulty encoders."""

from __future__ import annotations

import numpy as np
import pytest
from encoding_games import ODD_FENS, spec_of

from variant_ai.core.encoding import Encoder, MoveCodec
from variant_ai.core.rules.fairy.fairy_rules import FairyRules
from variant_ai.core.spec import VariantSpec, builtin_specs
from variant_ai.core.testing import encoding_conformance as conformance
from variant_ai.testing import check_encoder


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_every_spec_passes(name: str) -> None:
    spec = spec_of(name)
    positions = 60 if spec.rules.engine == "kernel" else 8
    report = check_encoder(spec, positions, seed=3, starts=ODD_FENS.get(name, ()))
    assert report.first_difference == ""
    assert report.positions == positions
    assert report.counts["moves to policy map and back"] == report.moves > positions
    assert ("mirror images" in report.counts) == (
        "files" in spec.symmetry and spec.rules.engine == "kernel"
    )


@pytest.mark.parametrize(("name", "left_out"), [("chess", True), ("minishogi", False)])
def test_an_asymmetric_piece_is_no_difference(name: str, left_out: bool) -> None:
    """On a rotated board the moves of the players still correspond to each other."""
    data = spec_of(name).model_dump(by_alias=True)
    letter = "N" if name == "chess" else "S"
    data["pieces"][letter]["moves"] = "FfWlbN"
    data |= {"policy": "derived", "symmetry": ()}
    report = check_encoder(VariantSpec.model_validate(data), 40, seed=3)
    assert report.first_difference == ""
    assert report.counts["views of the other player"] == 40
    assert (f"{letter} moves differently to the left" in report.left_out) == left_out


def test_two_moves_with_one_action_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_plane_only(self: Encoder, position: np.ndarray, move: int) -> int:
        return move >> 7 & 127

    monkeypatch.setattr(Encoder, "action", first_plane_only)
    report = check_encoder(spec_of("xiangqi"), 50, seed=1)
    assert report.first_difference.startswith(
        "policy map: FEN rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1, move "
    )
    assert report.positions == 1 and not report.agrees


def test_a_code_that_comes_back_as_another_move_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MoveCodec, "decode", lambda self, position, code: 9)
    report = check_encoder(spec_of("crazyhouse"), 50, seed=1)
    assert report.first_difference.startswith(
        "codes: FEN rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[]"
    )
    assert "comes back as a1b2" in report.first_difference


def test_actions_that_do_not_mirror_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    same = property(lambda self: np.arange(self.actions, dtype=np.int32))
    monkeypatch.setattr(Encoder, "mirror_actions", same)
    report = check_encoder(spec_of("xiangqi"), 50, seed=1)
    assert report.first_difference.startswith("mirroring: FEN ")
    assert report.first_difference.endswith("has another action")


def test_planes_that_depend_on_the_colour_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Encoder.planes

    def biased(
        self: Encoder, positions: np.ndarray, *rest: object, **options: object
    ) -> np.ndarray:
        planes = right(self, positions, *rest, **options)  # type: ignore[arg-type]
        planes[:, 3] += positions["side"][:, None, None]
        return planes

    monkeypatch.setattr(conformance.Encoder, "planes", biased)
    report = check_encoder(spec_of("crazyhouse"), 50, seed=1)
    assert report.first_difference.startswith("colours: FEN ")
    assert report.first_difference.endswith("planes [3] depend on the colour")


def test_a_fen_that_changes_when_read_back_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FairyRules.fen
    monkeypatch.setattr(FairyRules, "fen", lambda self, p: right(self, p).replace(" w ", " b "))
    report = check_encoder(spec_of("xiangqi"), 5, seed=1, engine="fairy")
    assert report.first_difference.startswith("FEN: FEN ")
    assert report.engine == "fairy"
