"""Nets that OpenVINO has compiled are kept in files, which other processes may write at any time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from variant_ai.core.system.folders import FOLDER_VARIABLE

PROGRAM = """
from pathlib import Path
import numpy as np
from variant_ai.core.encoding import Encoder
from variant_ai.core.system.folders import cache_folder
from variant_ai.plugins import registry

spec = registry().variant("dobutsu")
net = registry().net(spec, Path("packaged"))
planes = np.zeros((4, *Encoder(spec).shape), np.float32)
first = registry().evaluator(spec, net, evaluator="openvino", batch=4)
second = registry().evaluator(spec, net, evaluator="openvino", batch=4)  # from the files
blobs = list(cache_folder("openvino").glob("*.blob"))
for blob in blobs:
    with blob.open("r+b") as file:
        file.truncate(0)
assert blobs and (second.evaluate(planes).value == first.evaluate(planes).value).all()
"""


def test_a_file_that_another_process_writes_again_is_no_bus_error(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, FOLDER_VARIABLE: str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
