"""One field of `Recipe` adds a setting of trainings everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import variant_ai

FIELD = """\
    patience: int = _option("--patience N", 3, "validations without progress", ge=1)
"""

CODE = """
import json, sys
from pathlib import Path
from click.testing import CliRunner
from variant_ai.cli.main import cli
from variant_ai.core.train.run.plan import prepare
from variant_ai.core.train.report.run_report import model_card
from variant_ai.core.train.run.run_folder import read_config
from variant_ai.core.train.run.training_settings import TrainRequest
from variant_ai.plugins import registry

print(*CliRunner().invoke(cli, ["train", "--help"]).output.split("--patience")[1].split()[:9])
wrong = CliRunner().invoke(cli, ["train", "--patience", "0"])
print(wrong.output.splitlines()[-1])
spec = registry().variant("xiangqi")
store, old = map(Path, sys.argv[1:])
given = {"spec": spec, "stores": (store,), "net": "alphazero-8v-map", "steps": 1, "device": "cpu"}
usual = prepare(TrainRequest(**given)).config
config = prepare(TrainRequest(**given, patience=7)).config
print(usual.patience, config.patience)
results = {"parameters": 1, "flops": 1, "steps": 1, "seconds": 1}
print(*[line for line in model_card(config, results).splitlines() if "patience" in line])
print("patience" in model_card(usual, results))
tree = usual.model_dump(mode="json")
del tree["patience"]
old.write_text(json.dumps(tree))
print(read_config(old).patience)
"""


def test_one_field_adds_a_setting(tmp_path: Path, store: Path) -> None:
    copy = tmp_path / "variant_ai"
    ignored = shutil.ignore_patterns("__pycache__", "*.onnx")
    shutil.copytree(Path(variant_ai.__file__).parent, copy, ignore=ignored)
    module = copy / "core" / "train" / "run" / "training_settings.py"
    source = module.read_text(encoding="utf-8")
    place = '    clip: float = _option("--clip"'
    assert place in source
    module.write_text(source.replace(place, FIELD + place), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE, str(store), str(tmp_path / "config.json")],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "N Validations without progress. [default: 3] [x>=1] --clip FLOAT",
        "Error: Invalid value for '--patience': 0 is not in the range x>=1.",
        "3 7",
        "- other settings: patience 7",
        "False",
        "3",
    ]
