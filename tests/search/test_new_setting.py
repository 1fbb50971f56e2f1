"""One line in `core/spec/search_settings.py` adds a setting everywhere; docs/search.md shows it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import variant_ai

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="needs the folder docs/ of the sources")

CODE = '''
import json, runpy, sys
from variant_ai.cli.common.search_options import NetChoice, settings_given
from variant_ai.core.arena.players.player_spec import parse_player
from variant_ai.core.arena.tuning.search_tuning import Range
from variant_ai.core.engine.protocols.chosen_options import OptionSet
from variant_ai.core.engine.protocols.engine_options import declare, declare_ucci
from variant_ai.core.errors import SpecError
from variant_ai.core.search.compiled_settings import compile_settings
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec import parse_spec, spec_hash
from variant_ai.core.spec.files.json_schema import json_schema

YAML = """
spec: 1
extends: crazyhouse
variant: mine
search:
  novelty: """
spec = parse_spec(YAML + "0.25", "mine.yaml")
print(spec.search.novelty, SearchParams.of(spec).novelty)
without = parse_spec(YAML.partition("search:")[0], "mine.yaml")
print(spec_hash(parse_spec(YAML + "0.0", "mine.yaml")) == spec_hash(without))
try:
    parse_spec(YAML + "2.5", "mine.yaml")
except SpecError as error:
    print(str(error).partition(" at most")[0])
print(compile_settings(spec, SearchParams.of(spec))["novelty"])
options = OptionSet(["mine"], "mine")
print(declare(options.find("Centi_Novelty")))
print(*[declare_ucci(one) for one in options.for_ucci() if "novelty" in one.field])
options.set("Centi_Novelty", "75")
print(options.search_overrides())
print(parse_player("net:-;evaluator=uniform;nodes=1;search.novelty=0.5").search)
print(settings_given(NetChoice(None, None, {}, "", ("novelty=0.5",))))
print(json.dumps(json_schema()["$defs"]["SearchWords"]["properties"]["novelty"], sort_keys=True))
print(Range.parse("novelty=0:0.5").text)
tables = runpy.run_path(sys.argv[1])["tables"]()
for name in ("search settings", "options"):
    print(*[line for line in tables[name].splitlines() if "ovelty" in line])
'''


def test_one_line_adds_a_setting(tmp_path: Path) -> None:
    page = (DOCS / "search.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^    novelty: .*\n", page, re.MULTILINE)
    copy = tmp_path / "variant_ai"
    ignored = shutil.ignore_patterns("__pycache__", "*.onnx")
    shutil.copytree(Path(variant_ai.__file__).parent, copy, ignore=ignored)
    module = copy / "core" / "spec" / "search_settings.py"
    source = module.read_text(encoding="utf-8")
    place = "    # --- virtual loss -"
    assert place in source
    module.write_text(source.replace(place, line + place), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE, str(DOCS / "tables.py")],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "0.25 0.25",
        "True",
        "mine.yaml:6:3: search.novelty:",
        "[0.25]",
        "option name Centi_Novelty type spin default -1 min -1 max 100",
        "option centi_novelty type spin default -1 min -1 max 100",
        "{'novelty': 0.75}",
        "{'novelty': 0.5}",
        "{'novelty': 0.5}",
        '{"anyOf": [{"maximum": 1, "minimum": 0, "type": "number"}, {"type": "null"}], '
        '"default": 0.0, "description": "bonus of moves without visits"}',
        "novelty=0:0.5",
        "| `novelty` | 0 – 1 | 0 | yes | `Centi_Novelty` | bonus of moves without visits |  |",
        "| `Centi_Novelty` | spin | -1 – 100 | -1 | Bonus of moves without visits; "
        "-1: the value of the variant |",
    ]
