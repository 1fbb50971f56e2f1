"""Names of Fairy-Stockfish's variants, and the names in specs that an engine lists at its start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from messages import error_message

from variant_ai.core.errors import SpecError
from variant_ai.core.spec import builtin_specs, parse_spec
from variant_ai.core.spec.catalogue import spec_names
from variant_ai.specs.names import FAIRY_NAMES, SHIPPED


def test_the_names_are_those_of_the_library() -> None:
    # in a process of its own: specs add variants to the library
    code = "import pyffish; print(*pyffish.variants())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(FAIRY_NAMES) == sorted(done.stdout.split())


def test_the_table_of_shipped_names_agrees_with_the_specs() -> None:
    found = {}
    for name, path in builtin_specs().items():
        spec = parse_spec(path.read_text(encoding="utf-8"))
        found[name] = (spec.variant, spec.fairy or "", spec.protocols)
        assert spec_names(path) == found[name]
    assert found == SHIPPED


def test_an_unknown_name_is_rejected_with_its_line_and_similar_names() -> None:
    message = error_message("xiangqi", ("fairy: xiangqi", "fairy: xiangqui"))
    assert message.startswith("my.yaml:")
    assert "no variant 'xiangqui' (similar: xiangqi" in message


@pytest.mark.parametrize(
    "protocols",
    [
        "protocols: [uci, ucci]",
        "protocols:\n  - uci\n  - ucci",
        "protocols:\n- uci\n- ucci",
        "protocols:  # two\n  - uci\n  # and\n  - 'ucci'",
        'protocols: ["uci",\n  ucci]',
    ],
)
def test_protocols_are_read_in_every_style_of_list(tmp_path: Path, protocols: str) -> None:
    text = builtin_specs()["xiangqi"].read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("protocols:"))
    path = tmp_path / "own.yaml"
    path.write_text(text.replace(line, protocols), encoding="utf-8")
    assert spec_names(path) == ("xiangqi", "xiangqi", ("uci", "ucci"))
    assert parse_spec(path.read_text(encoding="utf-8")).protocols == ("uci", "ucci")


@pytest.mark.parametrize(
    ("name", "whole", "without"),
    [
        ("chess", "rnbqkbnr/pp", "rnbq1bnr/pp"),
        ("chess", "/RNBQKBNR ", "/RNBQ1BNR "),
    ],
)
def test_a_start_without_a_royal_piece_that_the_rules_need_is_rejected(
    name: str, whole: str, without: str
) -> None:
    text = builtin_specs()[name].read_text(encoding="utf-8")
    assert whole in text
    text = text.replace(whole, without)
    if "castling:" in text:  # its own check would report first
        text = "\n".join(line for line in text.splitlines() if not line.startswith("castling:"))
        text = text.replace("w KQkq", "w -")
    with pytest.raises(SpecError, match=r"rules\.start.*(royal|king)"):
        parse_spec(text, "my.yaml")
