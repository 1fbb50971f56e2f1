"""`variant-ai doctor`: check the installation, and give advice on every problem."""

from __future__ import annotations

import importlib
import platform
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click

from variant_ai import __version__
from variant_ai.cli.common.console import note, print_json
from variant_ai.cli.common.ending import EXIT_ERROR
from variant_ai.cli.common.options import FiniteRange, examples, json_option
from variant_ai.core.errors import EngineError, SpecError, VariantAIError
from variant_ai.core.system.missing_packages import TRAINING, how_to_install, installed_version
from variant_ai.core.system.text_tables import WIDTH, counted

DISTRIBUTION = "variant-ai"
MIN_FREE = 500 * 2**20
"""Free bytes on the disk of the cache below which it is a problem."""
IMPORTS = ("numpy", "numba", "pyffish", "torch", "onnx", "onnxruntime", "zstandard", "safetensors")
ENGINES = ("fairy-stockfish",)
NAME_WIDTH = 13
"""Columns of the names of checks."""

Status = Literal["ok", "note", "problem"]
_MARKS = {"ok": "✓", "note": "·", "problem": "✗"}
_PLAIN_MARKS = {"ok": "ok", "note": "--", "problem": "!!"}


@dataclass(frozen=True)
class Check:
    """One finding. `note`: not an error, but worth knowing."""

    name: str
    status: Status
    found: str
    advice: str = ""
    """Advice, unless the status is `ok`."""


@click.command(
    epilog=examples(
        "variant-ai doctor",
        "# for a bug report",
        "variant-ai doctor --json",
        "# without the self-test",
        "variant-ai doctor --seconds 0",
    )
)
@click.option(
    "--seconds",
    type=FiniteRange(min=0),
    default=2.0,
    help="Time for the self-test of all variants together; 0: no self-test, nothing is compiled and no "
    "evaluator is chosen.",
)
@json_option
def command(seconds: float, as_json: bool) -> None:
    """Check this installation and suggest what to do.

    Checks versions, devices, plugins, the cache of compiled code and other programs. Then it compiles
    missing code, plays random games of every variant with rules, encoder, a small network and search,
    and chooses the fastest evaluator for each net that comes with a variant. The exit
    status is 1 if there is a problem.
    """
    checks: list[Check] = []
    for check in run_checks(seconds):
        checks.append(check)
        if not as_json:
            _print(check)
    problems = sum(check.status == "problem" for check in checks)
    if as_json:
        print_json({"ok": problems == 0, "checks": [asdict(check) for check in checks]})
    elif problems:
        note(counted(problems, "problem"))
    if problems:
        sys.exit(EXIT_ERROR)


def _print(check: Check) -> None:
    encoding = (sys.stdout.encoding or "").lower()
    mark = (_MARKS if encoding.startswith("utf") else _PLAIN_MARKS)[check.status]
    head = f"{mark} {check.name:<{NAME_WIDTH}} "
    click.echo(
        textwrap.fill(
            check.found,
            WIDTH,
            initial_indent=head,
            subsequent_indent=" " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
    if check.advice:
        click.echo(f"    → {check.advice}" if mark in _MARKS.values() else f"    > {check.advice}")


def run_checks(seconds: float) -> Iterator[Check]:
    """Yield all findings in order."""
    system = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Check("python", "ok", system)
    yield from _check_packages()
    broken: set[str] = set()
    yield from _check_imports(broken)
    yield from _check_devices(broken)
    yield from _check_plugins()
    yield from _check_cache(broken)
    yield from _check_engines()
    yield _check_terminal()
    if seconds > 0:
        yield from _check_compiled(broken)
        yield from _check_variants(seconds, broken)
        yield from _check_nets(broken)


# --- the checks ----------------------------------------------------------------------------------


def _check_packages() -> Iterator[Check]:
    """Compare installed versions with the ranges in our metadata."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    try:
        needed = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        yield Check(
            DISTRIBUTION,
            "problem",
            f"{__version__}, not installed",
            "run `pip install -e .` in its folder; without it no plugin is found",
        )
        return
    yield Check(
        DISTRIBUTION, "ok", f"{installed_version(DISTRIBUTION)} in {Path(__file__).parents[2]}"
    )
    versions: list[str] = []
    left_out: list[str] = []
    for requirement in map(Requirement, needed):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        command = f"`pip install '{requirement.name}{requirement.specifier}'`"
        found = installed_version(requirement.name)
        if found is None and requirement.name in TRAINING:
            left_out.append(requirement.name)
        elif found is None:
            yield Check("package", "problem", f"{requirement.name} is missing", f"run {command}")
        elif requirement.specifier.contains(found, prereleases=True):
            versions.append(f"{requirement.name} {found}")
        else:
            problem = f"{requirement.name} {found} is not {requirement.specifier}"
            yield Check("package", "problem", problem, f"run {command}")
    yield Check("packages", "ok", ", ".join(versions))
    if left_out:
        found = f"{', '.join(left_out)}: not installed; nets can be played, but not trained"
        yield Check("training", "note", found, f"to train, run `{how_to_install(left_out[0])}`")


def _check_imports(broken: set[str]) -> Iterator[Check]:
    """Import the large packages; names that fail are added to `broken`."""
    for name in IMPORTS:
        try:
            importlib.import_module(name)
        except Exception as error:
            broken.add(name)
            if installed_version(name) is None:
                continue  # reported with the packages
            yield Check(
                "import",
                "problem",
                f"{name} cannot be imported: {type(error).__name__}: {error}",
                f"run `pip install --force-reinstall {name}`",
            )


def _check_devices(broken: set[str]) -> Iterator[Check]:
    from variant_ai.core.system.processors import processors

    usable = f"{counted(processors(), 'core')} usable"
    yield Check("cpu", "ok", f"{platform.processor() or platform.machine()}, {usable}")
    gpu_here = shutil.which("nvidia-smi") is not None
    torch_has_gpu = False
    if "torch" not in broken:
        import torch

        from variant_ai.core.train.loop.devices import choose_device, choose_precision

        device = choose_device("auto")
        precision = choose_precision("auto", device)
        yield Check("training", "ok", f"torch {torch.__version__} on {device}, {precision}")
        for index in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(index)
            yield Check("gpu", "ok", f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB")
        torch_has_gpu = torch.cuda.is_available()
        if gpu_here and not torch_has_gpu:
            yield Check(
                "gpu",
                "note",
                "there is an NVIDIA driver, but torch does not see a GPU",
                "to train and play on it, install a torch built for CUDA that the driver supports",
            )
    if "onnxruntime" not in broken:
        import onnxruntime

        providers = onnxruntime.get_available_providers()
        yield Check("providers", "ok", f"onnxruntime: {', '.join(providers)}")
        if "CUDAExecutionProvider" in providers and (error := _gpu_error()):
            yield Check(
                "providers",
                "problem" if gpu_here else "note",
                f"onnxruntime was built for CUDA, but does not run on a GPU: {error}",
                "install the CUDA and cuDNN versions that this onnxruntime-gpu requires, or onnxruntime",
            )
        if gpu_here and not any("CUDA" in name for name in providers):
            yield Check(
                "providers",
                "note",
                "there is an NVIDIA driver, but onnxruntime runs on the CPU",
                "nothing is needed: torch evaluates on the GPU"
                if torch_has_gpu
                else "to evaluate on the GPU, install onnxruntime-gpu instead of onnxruntime",
            )


def _gpu_error() -> str:
    """The error of onnxruntime when it runs a packaged net on the first GPU; empty if it works."""
    from variant_ai import variants
    from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator

    net = next(path for folder in variants.__path__ for path in Path(folder).glob("*/model.onnx"))
    try:
        OnnxEvaluator(net, device="cuda", batch=1).close()
    except VariantAIError as error:
        return str(error)
    return ""


def _check_plugins() -> Iterator[Check]:
    from variant_ai.cli.main import COMMANDS
    from variant_ai.plugins import registry

    registry().reserve("register_commands", COMMANDS)
    for plugin in registry().plugins:
        label = f"{plugin.name} {plugin.version}".strip()
        if plugin.problem:
            yield Check(
                "plugin",
                "problem",
                f"{label}: {plugin.problem}",
                f"update or uninstall {plugin.distribution or plugin.name}, "
                "or leave it out of VARIANT_AI_PLUGINS",
            )
    good = [plugin.name for plugin in registry().plugins if not plugin.problem]
    yield Check("plugins", "ok", ", ".join(good))


def _check_cache(broken: set[str]) -> Iterator[Check]:
    """The cache of compiled code; without it everything is compiled again each time."""
    if broken & {"numpy", "numba"}:
        return
    from variant_ai.core.jit import machine_code
    from variant_ai.core.system.folders import FOLDER_VARIABLE

    folder = machine_code.code_folder(Path(machine_code.__file__)).parent
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 2**20
    free = shutil.disk_usage(folder).free
    found = f"{folder}, {counted(len(files), 'file')}, {size:.0f} MiB"
    if free < MIN_FREE:
        yield Check(
            "cache",
            "problem",
            f"{found}; {free / 2**20:.0f} MiB free on its disk",
            f"free some space there, or name another folder in {FOLDER_VARIABLE}",
        )
    elif not files:
        yield Check("cache", "note", f"{found}: empty", "the first use compiles for a minute, once")
    else:
        yield Check("cache", "ok", found)


def _check_engines() -> Iterator[Check]:
    from variant_ai.core.arena.programs.engine_process import engine_command

    for name in ENGINES:
        try:
            yield Check("engine", "ok", engine_command(name)[0])
        except EngineError:
            yield Check(
                "engine",
                "note",
                f"{name} is not installed; only `store label` and games against it need it",
                f"`apt-get install {name}`, or any other UCI engine of the variant",
            )


def _check_terminal() -> Check:
    encoding = sys.stdout.encoding or "unknown"
    if encoding.lower().replace("-", "") in ("utf8", "gb18030", "gbk"):
        return Check("terminal", "ok", encoding)
    return Check(
        "terminal",
        "note",
        f"{encoding}: missing characters are shown as ?",
        "set PYTHONUTF8=1, or LANG to a UTF-8 locale",
    )


def _check_compiled(broken: set[str]) -> Iterator[Check]:
    """Compile all functions that are not in the cache."""
    if broken & {"numpy", "numba"}:
        return
    from variant_ai.core.jit import parallel_compilation

    began = time.monotonic()
    before, total = parallel_compilation.progress()
    parallel_compilation.compile_all()
    now = f", {total - before} of them now in {time.monotonic() - began:.0f} s"
    yield Check("compiled", "ok", f"{total} functions{now if before < total else ''}")


def _check_nets(broken: set[str]) -> Iterator[Check]:
    """Choose the fastest evaluator of each packaged net, so that later starts need not measure."""
    if broken & {"numpy", "numba", "onnx", "onnxruntime"}:
        return
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.spec.catalogue import PACKAGED
    from variant_ai.plugins import registry

    for name in registry().variants:
        log: list[str] = []
        try:
            spec = registry().variant(name)
            model = registry().net(spec, Path(PACKAGED))
        except VariantAIError:
            continue  # most variants come without a net
        batch = SearchParams.of(spec).batch_size
        try:
            registry().evaluator(spec, model, batch=batch, log=log.append).close()
        except (VariantAIError, RuntimeError) as error:
            yield Check("net", "problem", f"{name}: {error}", "choose another one with --evaluator")
        else:
            chosen = log[0].removeprefix("Evaluator: ").rstrip(".") if log else "ready"
            yield Check("net", "ok", f"{name}: {chosen}")


def _check_variants(seconds: float, broken: set[str]) -> Iterator[Check]:
    from variant_ai.plugins import registry

    if broken & {"numpy", "numba", "pyffish"}:
        yield Check("self-test", "note", "not run", "fix the imports above first")
        return
    from variant_ai.core.testing.variant_check import check_variant

    share = seconds / max(1, len(registry().variants))
    for name, entry in registry().variants.items():
        try:
            done = check_variant(registry().rules(registry().variant(name)), share)
            if not done.agrees:
                raise VariantAIError(done.first_difference)
        except SpecError as error:
            yield Check(name, "problem", str(error), f"fix {entry.path}, or remove it")
        except Exception as error:  # any error is a finding
            problem = f"self-test failed: {type(error).__name__}: {error}"
            yield Check(name, "problem", problem, "report this with `variant-ai doctor --json`")
        else:
            sample = "with" if entry.sample and entry.sample.is_file() else "without"
            yield Check(
                name,
                "ok",
                f"{counted(done.positions, 'ply')} through rules, encoder, net and search in {done.seconds:.1f} s, "
                f"{sample} sample games",
            )
