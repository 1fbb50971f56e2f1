"""Evaluators times batch sizes for one net: positions a second, and ratios to onnxruntime fp32.

    python benchmarks/evaluators.py --variant chess                      # 13 blocks, random weights
    python benchmarks/evaluators.py --variant chess --blocks 5 --batches 8 16 64 --rounds 200
    python benchmarks/evaluators.py --variant chess --threads 1

int8 is calibrated on random planes: its speed does not depend on them; its accuracy for a trained net is
printed by `variant-ai export --precision int8`. The evaluators take turns, so that other programs slow
all of them equally. Ratios are given by the median of wall time, by the best time, and by processor
time, which depends least on the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from variant_ai.cli.common.ending import run_script
from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluator, make_evaluator
from variant_ai.core.inference.backends import openvino_backend as ov
from variant_ai.core.inference.choosing.evaluator_timing import interleaved
from variant_ai.core.inference.model_file import beside_name
from variant_ai.core.nets import configure_for, quantise
from variant_ai.core.nets.onnx_export import export_onnx, write_metadata
from variant_ai.core.nets.onnx_files import read_onnx, write_onnx
from variant_ai.core.spec import VariantSpec, encoding_hash
from variant_ai.plugins import registry

CONTENDERS = ("onnx@fp32", "onnx@int8", "openvino@fp32", "openvino@bf16", "openvino@int8")


def write_models(spec: VariantSpec, blocks: int | None, path: Path, spare: int) -> None:
    """Write the net in fp32 to `path` and in int8 beside it."""
    encoder = Encoder(spec)
    torch.manual_seed(0)
    size: dict[str, Any] = {} if blocks is None else {"blocks": blocks}
    name = "risev2-mobile" if blocks != 5 else "risev2-mobile-small"
    config = configure_for(name, encoder, **size)
    metadata = {"variant": spec.variant, "encoding_hash": encoding_hash(spec), "net": "random"}
    export_onnx(config.build(), path, metadata, shape=config.shape)
    rng = np.random.default_rng(0)
    planes_ = [(rng.random((16, *encoder.shape)) < 0.1).astype(np.float32) for _ in range(2)]
    model = read_onnx(path)
    exclude = [name for _, names in quantise.SPARING[:spare] for name in names(model)]
    reduced = quantise.quantise(model, planes_, exclude=exclude)
    write_metadata(reduced, {**metadata, "precision": "int8"})
    write_onnx(reduced, beside_name(path, "int8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--variant", default="chess")
    parser.add_argument("--blocks", type=int, help="blocks of RISEv2 mobile; 13 by default")
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 16, 64])
    parser.add_argument("--rounds", type=int, default=120, help="evaluations by each evaluator")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--spare", type=int, default=0, help="levels of int8 left in fp32")
    parser.add_argument("--evaluators", nargs="+", default=list(CONTENDERS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="write the nets to DIR/VARIANT.onnx"
    )
    given = parser.parse_args()
    spec = registry().variant(given.variant)
    names = [n for n in given.evaluators if ov.available() or not n.startswith("openvino")]
    names = [n for n in names if n != "openvino@bf16" or ov.has_bf16()]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if given.keep is not None:
            given.keep.mkdir(parents=True, exist_ok=True)
        path = (given.keep or Path(folder)) / f"{spec.variant}.onnx"
        write_models(spec, given.blocks, path, given.spare)
        for batch in given.batches:
            made: dict[str, Evaluator] = {
                name: make_evaluator(
                    spec, path, evaluator=name, batch=batch, threads=given.threads, log=print
                )
                for name in names
            }
            timings = interleaved(made, batch, warm_up=3, rounds=given.rounds)
            first = timings[names[0]]
            for name, timing in timings.items():
                rows.append(
                    {
                        "batch": batch,
                        "evaluator": name,
                        "positions_per_second": round(timing.rate, 1),
                        "per_processor_second": round(timing.processor_rate, 1),
                        "ratio_median": round(first.median / timing.median, 2),
                        "ratio_best": round(first.best / timing.best, 2),
                        "ratio_processor": round(first.processor / timing.processor, 2),
                    }
                )
            for evaluator in made.values():
                evaluator.close()
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    print("batch  evaluator       positions/s   /CPU s   × median  × best  × CPU time")
    for row in rows:
        print(
            f"{row['batch']:5}  {row['evaluator']:14} {row['positions_per_second']:12,.0f} "
            f"{row['per_processor_second']:8,.0f} {row['ratio_median']:10.2f} "
            f"{row['ratio_best']:7.2f} {row['ratio_processor']:11.2f}"
        )


if __name__ == "__main__":
    run_script(main)
