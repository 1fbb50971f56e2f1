"""Speed of training, evaluators and search on a GPU, measured in under ten minutes.

    python benchmarks/gpu.py                              # a CUDA GPU, or several
    python benchmarks/gpu.py --into docs/speed.md         # and write the tables into that page
    python benchmarks/gpu.py --device cpu --quick         # test this program without a GPU

It measures training by net and precision, several processes that train one net together (with two
GPUs or more; on a CPU with two processes), evaluators by batch size, and the search with the fastest
evaluator. Nets have random weights, which are as fast as trained ones. Training reads the sample
store that comes with the variant.

NAME.json has every number, and is written after each measurement; NAME.md has the tables. Missing
measurements are listed with the reason. After --minutes no other measurement begins.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from gpu_report import Report, Row, machine, markdown
from gpu_training import Course, parse_net, together_rows, train_rows
from page_tables import marks, replaced

from variant_ai.cli.common.ending import EXIT_INTERRUPTED, run_script
from variant_ai.core.analysis import search_speed as speed
from variant_ai.core.errors import UnknownNameError, VariantAIError
from variant_ai.core.inference import Evaluator, make_evaluator
from variant_ai.core.inference.backends.torch_backend import TorchEvaluator
from variant_ai.core.inference.choosing.evaluator_timing import interleaved
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.inference.model_file import beside_name
from variant_ai.core.nets import NetConfig
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.rules.game import Game
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec import VariantSpec, encoding_hash
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.loop.devices import choose_device
from variant_ai.core.train.measure.reduced_precision import write_fp16
from variant_ai.core.train.run.plan import configure
from variant_ai.core.train.run.training_settings import TrainRequest
from variant_ai.plugins import registry

SCRIPT = "benchmarks/gpu.py"
VARIANTS = ("crazyhouse", "xiangqi")
NETS = ("risev2-mobile", "risev3-mobile", "alphazero-8v-map", "risev2-mobile-small:5x64")
"""Nets to train; the first and the last are also used for evaluators and search."""
PRECISIONS = ("fp32", "bf16")
EVALUATORS = {
    "cuda": ("torch@fp32", "torch@bf16", "torch@fp16", "onnx@fp32", "onnx@fp16"),
    "cpu": ("torch@fp32", "onnx@fp32"),
}
LIBRARIES = ("torch", "onnx", "tensorrt", "openvino")
USUAL: dict[str, Any] = {
    "variants": VARIANTS,
    "nets": NETS,
    "batches": (1, 16, 64, 256, 1024),
    "search_batches": (16, 64, 256),
    "seconds": 4.0,
}
QUICK: dict[str, Any] = {
    "variants": VARIANTS[1:],
    "nets": ("risev2-mobile-small:1x8",),
    "batches": (1, 8),
    "search_batches": (8,),
    "train_batch": 16,
    "threads": 1,
    "seconds": 0.2,
}
"""Options with --quick: the same measurements of a tiny net."""


def net_config(spec: VariantSpec, net: str) -> NetConfig:
    """Return the net as in trainings. Raises UnknownNameError, VariantAIError."""
    name, size = parse_net(net)
    request = TrainRequest(spec=spec, stores=(), net=name, size=size)
    return configure(request, torch.device("cpu"))


class Contenders:
    """Evaluators of a net with random weights."""

    def __init__(self, spec: VariantSpec, net: str, device: str, folder: Path, batch: int) -> None:
        """batch: the largest batch. Raises DataError if the net's file computes
        something else than the net."""
        self.spec, self.net, self.device, self.batch = spec, net, device, batch
        self.made: dict[str, Evaluator] = {}
        self.rates: dict[tuple[str, int], float] = {}
        torch.manual_seed(0)
        self.config = net_config(spec, net)
        self.module = self.config.build().eval()
        self.path = folder / "net.onnx"
        facts = {
            "variant": spec.variant,
            "encoding_hash": encoding_hash(spec),
            "net": self.config.title,
            "head": self.config.head,
        }
        self.info = ModelInfo.of(facts, net)
        export_onnx(self.module, self.path, facts, shape=self.config.shape)

    def make(self, name: str) -> None:
        """Make the evaluator NAME@PRECISION. Raises VariantAIError if it does not run here."""
        library, _, precision = name.partition("@")
        if library == "torch":
            shape = (self.config.planes, *self.config.board)
            self.made[name] = TorchEvaluator(
                self.module, self.info, shape, self.config.actions, device=self.device,
                precision=precision or None, batch=self.batch,
            )  # fmt: skip
            return
        half = beside_name(self.path, "fp16")
        if precision == "fp16" and not half.is_file():
            write_fp16(self.path, half, self.spec)
        device = self.device
        if library == "tensorrt":
            library, device = "onnx", self.device.replace("cuda", "tensorrt")
        self.made[name] = make_evaluator(
            self.spec, self.path, evaluator=f"{library}@{precision}" if precision else library,
            batch=self.batch, device=device,
        )  # fmt: skip

    def rows(self, batch: int, seconds: float) -> list[Row]:
        """Measure the rate of each evaluator at a batch size; they take turns."""
        timings = interleaved(self.made, batch, seconds=seconds)
        for name, timing in timings.items():
            self.rates[name, batch] = timing.rate
        return [
            {
                "variant": self.spec.variant,
                "net": self.net,
                "evaluator": name,
                "batch": batch,
                "positions_per_second": round(timing.rate, 1),
                "milliseconds": round(1000 * timing.median, 3),
            }
            for name, timing in timings.items()
        ]

    def search_rows(self, batch: int, seconds: float) -> list[Row]:
        """Measure the search from the start position, with the fastest evaluator at this batch size."""
        if not self.rates:
            raise VariantAIError("no evaluator was measured")
        near = min({b for _, b in self.rates}, key=lambda b: abs(b - batch))
        rates = {name: rate for (name, b), rate in self.rates.items() if b == near}
        best = max(rates, key=lambda name: rates[name])
        params = SearchParams.of(self.spec, batch_size=batch, memory_mb=2048)
        game = Game(registry().rules(self.spec))
        got = speed.measure(game, self.made[best], params, seconds=seconds, rounds=3)
        return [
            {
                "variant": self.spec.variant,
                "net": self.net,
                "evaluator": best,
                "batch": batch,
                "evaluations_per_second": round(got.evaluations_per_second, 1),
                "ratio": None if got.ratio is None else round(got.ratio, 3),
                "nodes_per_second": round(got.simulations_per_second, 1),
            }
        ]

    def close(self) -> None:
        for evaluator in self.made.values():
            evaluator.close()


# --- the whole ------------------------------------------------------------------------------------


def measure_training(report: Report, given: argparse.Namespace, device: torch.device) -> None:
    for variant in given.variants:
        for net in given.nets:
            for precision in given.precisions:
                course = Course(
                    variant, net, precision, str(device), given.train_batch, given.seconds,
                    given.threads,
                )  # fmt: skip
                what = f"{variant}, {net}, {precision}"
                report.measure("training", what, functools.partial(train_rows, course))
                if device.type == "cuda":
                    gc.collect()  # the trainer, whose memory the next one's count would include
                    torch.cuda.empty_cache()


def measure_processes(report: Report, given: argparse.Namespace, device: torch.device) -> None:
    """Train the first net in the last precision, with one process for each GPU."""
    gpus = torch.cuda.device_count() if device.type == "cuda" else 2
    counts = sorted({2, gpus}) if given.processes is None else given.processes
    threads = given.threads
    if device.type == "cpu":
        threads = threads or max(1, (os.cpu_count() or 1) // 2)
    for count in counts:
        course = Course(
            given.variants[0], given.nets[0], given.precisions[-1], device.type,
            given.train_batch, given.seconds, threads,
        )  # fmt: skip

        what = f"{course.variant}, {course.net}, {count} processes"
        if device.type == "cuda" and count > gpus:
            report.leave_out("processes", what, f"needs {count} GPUs, this machine has {gpus}")
            continue
        work = functools.partial(together_rows, course, count, report.left)
        report.measure("processes", what, work)


def measure_inference(report: Report, given: argparse.Namespace, device: torch.device) -> None:
    """Measure evaluators and search with the first net and the last."""
    for variant in given.variants:
        for net in dict.fromkeys((given.nets[0], given.nets[-1])):
            with tempfile.TemporaryDirectory() as folder:
                contenders_of(report, given, device, variant, net, Path(folder))


def contenders_of(
    report: Report, given: argparse.Namespace, device: torch.device, variant: str, net: str,
    folder: Path,
) -> None:  # fmt: skip
    """Measure one net."""
    contenders: Contenders | None = None
    largest = max([*given.batches, *given.search_batches])

    def export() -> list[Row]:
        nonlocal contenders
        spec = registry().variant(variant)
        contenders = Contenders(spec, net, str(device), folder, largest)
        return []

    def make(made: Contenders, name: str) -> list[Row]:
        made.make(name)
        return []

    report.measure("evaluators", f"{variant}, {net}, its ONNX file", export)
    if contenders is None:
        return
    with contextlib.closing(contenders):
        for name in given.evaluators:
            what = f"{variant}, {net}, {name}"
            report.measure("evaluators", what, functools.partial(make, contenders, name))
        for section, batches, rows, seconds in (
            ("evaluators", given.batches, contenders.rows, given.seconds / 2),
            ("search", given.search_batches, contenders.search_rows, given.seconds),
        ):
            for batch in batches if contenders.made else ():
                what = f"{variant}, {net}, batch {batch}"
                report.measure(section, what, functools.partial(rows, batch, seconds))


def power_of_two(text: str) -> int:
    """Read a batch size: a power of two, because evaluators on a GPU pad other sizes."""
    number = int(text)
    if number < 1 or number & (number - 1):
        raise argparse.ArgumentTypeError(f"{text}: accepted are 1, 2, 4, 8 and so on")
    return number


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return number


def seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 3600:
        raise argparse.ArgumentTypeError(f"{text}: more than 0 and less than 3600")
    return number


def options() -> argparse.Namespace:
    """Return the options with their defaults; names are checked before anything is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or cpu")
    parser.add_argument("--quick", action="store_true", help="a tiny net: tests this program")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("gpu"),
        metavar="NAME",
        help="write NAME.json and NAME.md, replacing older ones (default: gpu)",
    )
    parser.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help=f"also write the tables into a page, between {' and '.join(marks(SCRIPT))}",
    )
    parser.add_argument(
        "--minutes", type=seconds, default=9.0, help="for all measurements (default: 9)"
    )
    parser.add_argument("--seconds", type=seconds, help="for each measurement (default: 4)")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help=" ".join(VARIANTS))
    parser.add_argument(
        "--nets",
        nargs="+",
        metavar="NET",
        help=f"NAME or NAME:BLOCKSxCHANNELS (default: {' '.join(NETS)})",
    )
    parser.add_argument(
        "--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS, help="of training"
    )
    parser.add_argument(
        "--train-batch", type=positive, help="batch size of each process (default: the spec's)"
    )
    parser.add_argument("--threads", type=positive, help="threads of torch on a CPU")
    parser.add_argument(
        "--processes",
        type=positive,
        nargs="*",
        metavar="N",
        help="numbers of processes that train together (default: 2, and as many as GPUs)",
    )
    parser.add_argument(
        "--evaluators",
        nargs="+",
        metavar="NAME@PRECISION",
        help=f"of {', '.join(LIBRARIES)} (default: {' '.join(EVALUATORS['cuda'])})",
    )
    parser.add_argument(
        "--batches", type=power_of_two, nargs="+", help="batch sizes of the evaluators"
    )
    parser.add_argument(
        "--search-batches", type=power_of_two, nargs="+", help="batch sizes of the search"
    )
    given = parser.parse_args()
    for name, value in {**USUAL, **(QUICK if given.quick else {})}.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def checked(given: argparse.Namespace) -> torch.device:
    """Return the device. Raises an error for a wrong name or a page without marks."""
    device = choose_device(given.device)
    for name in given.variants:
        for net in given.nets:
            net_config(registry().variant(name), net)
    given.evaluators = given.evaluators or EVALUATORS[device.type]
    for name in given.evaluators:
        if name.partition("@")[0] not in LIBRARIES:
            raise UnknownNameError("evaluator", name, LIBRARIES)
    if given.into is not None:
        replaced(given.into.read_text(encoding="utf-8"), "", given.into, SCRIPT)
    return device


def main() -> int:
    given = options()
    device = checked(given)
    words = [word for word in sys.argv[1:] if word != "--into" and word != str(given.into)]
    command = shlex.join(["python", "benchmarks/gpu.py", *words])
    facts = {"command": command, "machine": machine(device)}
    report = Report(given.output.with_name(given.output.name + ".json"), given.minutes, facts)
    status = 0
    try:
        measure_training(report, given, device)
        measure_inference(report, given, device)
        measure_processes(report, given, device)
    except KeyboardInterrupt:
        report.leave_out("stopped by hand", "all remaining measurements", "Ctrl-C")
        status = EXIT_INTERRUPTED
    tables = markdown(report)
    write_whole(given.output.with_name(given.output.name + ".md"), tables)
    print(tables, end="")
    if given.into is not None and not status:
        page = given.into.read_text(encoding="utf-8")
        write_whole(given.into, replaced(page, tables, given.into, SCRIPT))
    return status


if __name__ == "__main__":
    run_script(main)
