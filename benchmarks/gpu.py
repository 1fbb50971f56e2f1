"""All that a GPU is asked to do here, measured in under ten minutes by one command.

    python benchmarks/gpu.py                              # a CUDA GPU, or several
    python benchmarks/gpu.py --into docs/speed.md         # and put the tables into that page
    python benchmarks/gpu.py --device cpu --quick         # a trial of this program without a GPU

Measured are training by net and precision, several processes that train one net together (with two
GPUs or more; on a CPU with two processes), evaluators by batch, and the search with the fastest
evaluator. Nets have random weights, which cost what trained ones cost. Training reads the sample
store that comes with the variant.

NAME.json has every number, and is written after each measurement; NAME.md has the tables. What could
not be measured is listed with the reason. After --minutes no further measurement begins.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import torch

from variant_ai.cli.common import EXIT_INTERRUPTED, run_script
from variant_ai.core.analysis import speed
from variant_ai.core.inference import Evaluator, make_evaluator
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.inference.measure import interleaved
from variant_ai.core.inference.model_file import beside_name
from variant_ai.core.inference.torch import TorchEvaluator
from variant_ai.core.nets import NetConfig
from variant_ai.core.nets.export import export_onnx
from variant_ai.core.rules.game import Game
from variant_ai.core.search.params import SearchParams
from variant_ai.core.train.device import choose_device
from variant_ai.core.train.environment import describe_environment
from variant_ai.core.train.files import write_whole
from variant_ai.core.train.plan import TrainRequest, configure, prepare
from variant_ai.core.train.reduce import write_fp16
from variant_ai.core.train.source import Samples
from variant_ai.core.train.stores import NO_SPLIT, TrainSource
from variant_ai.core.train.trainer import Trainer
from variant_ai.core.train.workers import ALONE, Workers, open_workers
from variant_ai.plugins import registry
from variant_ai.specs import VariantSpec, encoding_hash
from variant_ai.specs.errors import DataError, UnknownNameError, VariantAIError

VARIANTS = ("crazyhouse", "xiangqi")
NETS = ("risev2-mobile", "risev3-mobile", "alphazero-8v-map", "risev2-mobile-small:5x64")
"""Nets to train; the first and the last are evaluated and searched with too."""
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
    "seconds": 0.2,
}
"""Options with --quick: the same measurements of a tiny net."""

WARM_STEPS = 3
TURNS = 2
"""How often a trainer changes between the sampler and a batch that stays."""
FURTHER = 90.0
"""Seconds after which processes that train together are ended, beside those they measure: torch is
loaded and the sampler compiled in each."""
BEGIN, END = "<!-- written by benchmarks/gpu.py -->", "<!-- end of benchmarks/gpu.py -->"


class Report:
    """Rows by section, kept in a file after each of them."""

    def __init__(self, path: Path, minutes: float, facts: dict[str, Any]) -> None:
        """Raises DataError if the file's folder does not exist."""
        if not path.absolute().parent.is_dir():
            raise DataError(f"{path}: there is no folder {path.parent}")
        self.path, self.facts = path, facts
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.missing: list[str] = []
        """Sentences on what could not be measured."""
        self.end = time.monotonic() + 60 * minutes
        self.save()

    @property
    def left(self) -> float:
        """Seconds until no further measurement begins."""
        return self.end - time.monotonic()

    def save(self) -> None:
        whole = {**self.facts, **self.rows, "missing": self.missing}
        write_whole(self.path, json.dumps(whole, indent=2))

    def measure(self, section: str, what: str, work: Callable[[], list[dict[str, Any]]]) -> None:
        """Adds the rows of a measurement, or the reason why there are none."""
        print(f"{section}: {what}", file=sys.stderr, flush=True)
        if self.left <= 0:
            self.missing.append(f"{section}, {what}: the time was up")
        else:
            try:
                rows = work()
            except (RuntimeError, VariantAIError) as error:  # RuntimeError: out of GPU memory too
                reason = str(error).strip().splitlines() or [type(error).__name__]
                self.missing.append(f"{section}, {what}: {reason[0]}")
                print(f"  {reason[0]}", file=sys.stderr, flush=True)
            else:
                self.rows.setdefault(section, []).extend(rows)
                for row in rows:
                    print("  " + _words(row), file=sys.stderr, flush=True)
        self.save()


def _words(row: dict[str, Any]) -> str:
    """A row for whoever waits: its last numbers."""
    return ", ".join(f"{name} {value}" for name, value in list(row.items())[2:])


# --- training --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """Steps to time: what the processes that train together are told too."""

    variant: str
    net: str
    """NAME or NAME:BLOCKSxCHANNELS."""
    precision: str
    device: str
    batch: int | None
    """Positions of a step of each process; None: the spec's, on a CPU fewer."""
    seconds: float
    threads: int | None = None

    def open(self, workers: Workers = ALONE) -> tuple[Trainer, TrainSource]:
        """A trainer, and the sampler of the variant's sample store. Raises DataError if the variant
        comes without one."""
        known = registry()
        spec = known.variant(self.variant)
        entry = known.entry_of(spec)
        if entry is None or entry.sample is None or not entry.sample.is_file():
            raise DataError(f"{spec.variant} comes without a sample store to train on")
        name, size = parse_net(self.net)
        batch = self.batch
        if workers.world > 1:
            batch = workers.world * (batch or spec.training.batch)
        request = TrainRequest(
            spec=spec,
            stores=(entry.sample,),
            split=NO_SPLIT,
            net=name,
            size=size,
            batch=batch,
            steps=1_000_000,
            device=self.device,
            precision=self.precision,
            threads=self.threads,
        )
        prepared = prepare(
            request, rules=known.rules(spec), builders=known.builders(), workers=workers
        )
        trainer = Trainer(
            prepared.config, prepared.train, None, Path(), tensorboard=False, workers=workers,
            builders=known.builders(),
        )  # fmt: skip
        return trainer, prepared.train


@dataclass
class Steps:
    """Time and number of steps of one trainer. Steps go on without looking at the clock for a
    while: to look is to wait for the GPU."""

    trainer: Trainer
    batches: Iterator[Samples]
    count: int = 0
    seconds: float = 0.0
    group: int = field(init=False)

    def __post_init__(self) -> None:
        self.group = 10 if self.trainer.device.type == "cuda" else 1

    @property
    def rate(self) -> float:
        """Positions a second, of all processes together."""
        return self.count * self.trainer.config.batch / self.seconds

    def run(self, seconds: float) -> None:
        """Steps for so long; processes that train together stop after the same one."""
        begun, late = self._now(), False
        while not late:
            self.step(self.group)
            self.count += self.group
            (late,) = self.trainer.workers.any(self._now() - begun >= seconds)
        self.seconds += self._now() - begun

    def step(self, count: int) -> None:
        rate, momentum = self.trainer.schedule.lr_at(0), self.trainer.schedule.momentum_at(0)
        for _ in range(count):
            self.trainer.step_at(self.batches, rate, momentum)

    def _now(self) -> float:
        if self.trainer.device.type == "cuda":
            torch.cuda.synchronize(self.trainer.device)
        return time.perf_counter()


def train_rows(course: Course) -> list[dict[str, Any]]:
    """Steps fed by the sampler, and in turns with them steps over one batch that stays in memory:
    what the sampler costs."""
    trainer, sampler = course.open()
    on_gpu = trainer.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(trainer.device)
    with _closing(sampler.batches()) as batches:
        fed, alone = Steps(trainer, batches), Steps(trainer, itertools.repeat(sampler.batch(0)))
        for steps in (fed, alone):
            steps.step(WARM_STEPS)
        for _ in range(TURNS):
            for steps in (fed, alone):
                steps.run(course.seconds / 2 / TURNS)
    memory = torch.cuda.max_memory_allocated(trainer.device) / 2**20 if on_gpu else None
    return [
        {
            "variant": course.variant,
            "net": course.net,
            "precision": course.precision,
            "batch": trainer.config.batch,
            "samples_per_second": round(fed.rate, 1),
            "net_alone": round(alone.rate, 1),
            "ratio": round(fed.rate / alone.rate, 3),
            "gpu_memory_mb": None if memory is None else round(memory),
        }
    ]


@contextlib.contextmanager
def _closing(batches: Iterator[Samples]) -> Iterator[Iterator[Samples]]:
    """Ends the sampler's threads after use."""
    try:
        yield batches
    finally:
        if isinstance(batches, Generator):
            batches.close()


def share_of_course(text: str) -> None:
    """One of several processes that train together, started by torchrun; the first one writes the
    rate to the file named in its orders."""
    orders = json.loads(text)
    target = Path(orders.pop("target"))
    course = Course(**orders)
    with open_workers() as workers:
        trainer, sampler = course.open(workers)
        with _closing(sampler.batches()) as batches:
            fed = Steps(trainer, batches)
            fed.step(WARM_STEPS)
            fed.run(course.seconds)
        if workers.first:
            write_whole(target, json.dumps({"rate": fed.rate, "batch": trainer.config.batch}))


def together_rows(course: Course, processes: int) -> list[dict[str, Any]]:
    """The rate of so many processes, started as torchrun starts them. Raises VariantAIError with
    the last words of one that failed."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "rate.json"
        orders = json.dumps({**course.__dict__, "target": str(target)})
        torchrun = (
            "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1",
            "--nproc-per-node", str(processes),
        )  # fmt: skip
        with subprocess.Popen(
            [sys.executable, *torchrun, __file__, "--share-of", orders],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as running:
            try:
                said, _ = running.communicate(timeout=course.seconds + FURTHER)
            except BaseException as error:
                running.terminate()  # torchrun ends its processes then, which a kill would leave
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(30)
                running.kill()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise VariantAIError(f"no answer after {error.timeout:.0f} s") from None
                raise
        if not target.is_file():
            errors = [line for line in said.splitlines() if re.search(r"Error\b", line)]
            lines = errors or said.strip().splitlines() or ["they ended without a word"]
            raise VariantAIError(lines[0].strip())
        got = json.loads(target.read_text(encoding="utf-8"))
    return [
        {
            "variant": course.variant,
            "net": course.net,
            "precision": course.precision,
            "processes": processes,
            "batch": got["batch"],
            "samples_per_second": round(got["rate"], 1),
        }
    ]


# --- evaluators and search ---------------------------------------------------------------------------


def parse_net(text: str) -> tuple[str, dict[str, int]]:
    """`NAME` or `NAME:BLOCKSxCHANNELS`. Raises DataError for anything else after the colon."""
    name, colon, size = text.partition(":")
    match = re.fullmatch(r"(\d+)x(\d+)", size)
    if not colon:
        return name, {}
    if match is None:
        raise DataError(f"net {text!r}: accepted is NAME or NAME:BLOCKSxCHANNELS, {name}:5x64")
    return name, {"blocks": int(match[1]), "channels": int(match[2])}


def net_config(spec: VariantSpec, net: str) -> NetConfig:
    """The net as trainings have it. Raises DataError, UnknownNameError, VariantAIError."""
    name, size = parse_net(net)
    request = TrainRequest(spec=spec, stores=(), net=name, size=size)
    return configure(request, torch.device("cpu"), registry().builders())


class Contenders:
    """The evaluators of one net of random weights."""

    def __init__(self, spec: VariantSpec, net: str, device: str, folder: Path, batch: int) -> None:
        """batch: the largest that will be asked for."""
        self.spec, self.net, self.device, self.batch = spec, net, device, batch
        self.made: dict[str, Evaluator] = {}
        self.rates: dict[tuple[str, int], float] = {}
        torch.manual_seed(0)
        self.config = net_config(spec, net)
        self.module = self.config.build(registry().builders()).eval()
        self.path = folder / f"{spec.variant}.onnx"
        facts = {
            "variant": spec.variant,
            "encoding_hash": encoding_hash(spec),
            "net": self.config.title,
            "head": self.config.head,
        }
        self.info = ModelInfo.of(facts, net)
        export_onnx(self.module, self.path, facts, shape=self.config.shape)

    def make(self, name: str) -> None:
        """Makes the evaluator NAME@PRECISION. Raises VariantAIError if it does not run here."""
        library, _, precision = name.partition("@")
        if library == "torch":
            shape = (self.config.planes, *self.config.board)
            self.made[name] = TorchEvaluator(
                self.module, self.info, shape, self.config.actions, device=self.device,
                precision=precision or None,
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

    def rows(self, batch: int, seconds: float) -> list[dict[str, Any]]:
        """Each evaluator's rate at a batch size; they take turns."""
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

    def search_rows(self, batch: int, seconds: float) -> list[dict[str, Any]]:
        """The search from the start position, with the evaluator that is fastest at this batch."""
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


# --- the tables --------------------------------------------------------------------------------------


def machine(device: torch.device) -> dict[str, Any]:
    """Where and with what was measured; nothing personal."""
    import onnxruntime

    facts: dict[str, Any] = {**describe_environment(), "date": date.today().isoformat()}
    facts["device"] = device.type
    facts["onnxruntime"] = onnxruntime.__version__
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts["gpu_memory_mb"] = properties.total_memory >> 20
        facts["gpu_capability"] = f"{properties.major}.{properties.minor}"
        facts["cuda"], facts["cudnn"] = torch.version.cuda, torch.backends.cudnn.version()
    return facts


def markdown(report: Report) -> str:
    """The tables of a report, as `docs/speed.md` has them."""
    facts, rows = report.facts["machine"], report.rows
    packages = f"torch {torch.__version__}, onnxruntime {facts['onnxruntime']}"
    cores = f"{facts['cpu']['cores']} cores ({facts['cpu']['name']})"
    where = f"{cores}, no GPU used"
    if facts["device"] == "cuda":
        gpus = facts["gpus"]
        memory = facts["gpu_memory_mb"] / 1024
        where = f"{len(gpus)} x {gpus[0]}, {memory:.0f} GiB, {cores}"
        packages += f", CUDA {facts['cuda']}, cuDNN {facts['cudnn']}"
    parts = [f"`{report.facts['command']}` on {where}; {packages}; {facts['date']}."]
    if "training" in rows:
        parts.append(
            "Training, samples a second. The sampler feeds the net; for the net alone one batch "
            "stays in memory:"
        )
        head = ("variant", "net", "precision", "batch", "samples/s", "net alone", "ratio", "MiB")
        names = ("samples_per_second", "net_alone", "ratio", "gpu_memory_mb")
        parts.append(
            _table(head, rows["training"], ("variant", "net", "precision", "batch", *names))
        )
    if "processes" in rows:
        parts.append("Processes that train one net together, each with a batch of its own:")
        head = ("variant", "net", "precision", "processes", "positions a step", "samples/s")
        parts.append(
            _table(
                head,
                rows["processes"],
                ("variant", "net", "precision", "processes", "batch", "samples_per_second"),
            )
        )
    if "evaluators" in rows:
        parts.append("Evaluators, positions a second by batch:")
        batches = sorted({row["batch"] for row in rows["evaluators"]})
        wide: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in rows["evaluators"]:
            key = (row["variant"], row["net"], row["evaluator"])
            line = wide.setdefault(
                key, dict(zip(("variant", "net", "evaluator"), key, strict=True))
            )
            line[str(row["batch"])] = row["positions_per_second"]
        names = ("variant", "net", "evaluator", *map(str, batches))
        parts.append(_table(names, list(wide.values()), names))
    if "search" in rows:
        parts.append(
            "The search from the start position, with the evaluator that is fastest at its batch:"
        )
        head = (
            "variant",
            "net",
            "evaluator",
            "batch",
            "evaluations/s",
            "of its own rate",
            "nodes/s",
        )
        names = ("evaluations_per_second", "ratio", "nodes_per_second")
        parts.append(_table(head, rows["search"], ("variant", "net", "evaluator", "batch", *names)))
    if report.missing:
        parts.append("Not measured:")
        parts.append("\n".join(f"- {line}" for line in report.missing))
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: list[dict[str, Any]], names: Sequence[str]) -> str:
    cells = [[_cell(row.get(name), name) for name in names] for row in rows]
    used = [i for i in range(len(head)) if any(line[i] for line in cells)]
    numbers = [all(_is_number(row.get(name)) for row in rows) for name in names]
    lines = [[head[i] for i in used], ["---:" if numbers[i] else "---" for i in used]]
    lines += [[line[i] for i in used] for line in cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _cell(value: Any, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}" if name == "ratio" else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def replaced(page: str, tables: str, path: Path) -> str:
    """The page with the tables between its two marks. Raises DataError if it has no such marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise DataError(
            f"{path}: needs the lines {BEGIN!r} and {END!r}; the tables go between them"
        )
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


# --- the whole -------------------------------------------------------------------------------------


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
                    torch.cuda.empty_cache()


def measure_processes(report: Report, given: argparse.Namespace, device: torch.device) -> None:
    """The first net in the last precision, with one process for each GPU."""
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

        def work(course: Course = course, count: int = count) -> list[dict[str, Any]]:
            if gpus < count and device.type == "cuda":
                raise VariantAIError(f"{count} processes need {count} GPUs; there is {gpus}")
            return together_rows(course, count)

        report.measure("processes", f"{course.variant}, {course.net}, {count} processes", work)


def measure_inference(report: Report, given: argparse.Namespace, device: torch.device) -> None:
    """Evaluators and search of the first net and the last."""
    for variant in given.variants:
        for net in dict.fromkeys((given.nets[0], given.nets[-1])):
            with tempfile.TemporaryDirectory() as folder:
                contenders_of(report, given, device, variant, net, Path(folder))


def contenders_of(
    report: Report, given: argparse.Namespace, device: torch.device, variant: str, net: str,
    folder: Path,
) -> None:  # fmt: skip
    """Measures one net."""
    if report.left <= 0:
        report.missing.append(f"evaluators and search, {variant}, {net}: the time was up")
        return
    largest = max([*given.batches, *given.search_batches])
    contenders = Contenders(registry().variant(variant), net, str(device), folder, largest)

    def make(name: str) -> list[dict[str, Any]]:
        contenders.make(name)
        return []

    try:
        for name in given.evaluators:
            what = f"{variant}, {net}, {name}"
            report.measure("evaluators", what, functools.partial(make, name))
        for section, batches, rows, seconds in (
            ("evaluators", given.batches, contenders.rows, given.seconds / 2),
            ("search", given.search_batches, contenders.search_rows, given.seconds),
        ):
            for batch in batches if contenders.made else ():
                what = f"{variant}, {net}, batch {batch}"
                report.measure(section, what, functools.partial(rows, batch, seconds))
    finally:
        contenders.close()


def power_of_two(text: str) -> int:
    """Batches are whole ones: evaluators on a GPU fill up others with empty rows."""
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
    """What was asked for, completed; names are checked before anything is measured."""
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
        help="writes NAME.json and NAME.md, over older ones (default: gpu)",
    )
    parser.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help=f"also puts the tables into a page, between {BEGIN} and {END}",
    )
    parser.add_argument("--minutes", type=seconds, default=9.0, help="of all (default: 9)")
    parser.add_argument("--seconds", type=seconds, help="of a measurement (default: 4)")
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
        "--train-batch", type=positive, help="of each process (default: the spec's)"
    )
    parser.add_argument("--threads", type=positive, help="of torch on a CPU")
    parser.add_argument(
        "--processes",
        type=positive,
        nargs="*",
        metavar="N",
        help="that train together, tried in turn (default: 2, and as many as GPUs)",
    )
    parser.add_argument(
        "--evaluators",
        nargs="+",
        metavar="NAME@PRECISION",
        help=f"of {', '.join(LIBRARIES)} (default: {' '.join(EVALUATORS['cuda'])})",
    )
    parser.add_argument("--batches", type=power_of_two, nargs="+", help="of the evaluators")
    parser.add_argument("--search-batches", type=power_of_two, nargs="+", help="of the search")
    parser.add_argument("--share-of", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name, value in {**USUAL, **(QUICK if given.quick else {})}.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def checked(given: argparse.Namespace) -> torch.device:
    """The device. Raises what a wrong name or a page without marks is answered with."""
    device = choose_device(given.device)
    for name in given.variants:
        for net in given.nets:
            net_config(registry().variant(name), net)
    given.evaluators = given.evaluators or EVALUATORS[device.type]
    for name in given.evaluators:
        if name.partition("@")[0] not in LIBRARIES:
            raise UnknownNameError("evaluator", name, LIBRARIES)
    if given.into is not None:
        replaced(given.into.read_text(encoding="utf-8"), "", given.into)
    return device


def main() -> int:
    given = options()
    if given.share_of:
        share_of_course(given.share_of)
        return 0
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
        report.missing.append("the rest: it was stopped by hand")
        report.save()
        status = EXIT_INTERRUPTED
    tables = markdown(report)
    write_whole(given.output.with_name(given.output.name + ".md"), tables)
    print(tables, end="")
    if given.into is not None and not status:
        page = given.into.read_text(encoding="utf-8")
        write_whole(given.into, replaced(page, tables, given.into))
    return status


if __name__ == "__main__":
    run_script(main)
