"""`variant-ai doctor`: every problem has advice, and no check ends the others."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import shutil
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from variant_ai.cli.host import doctor
from variant_ai.cli.main import cli
from variant_ai.core.spec import builtin_specs
from variant_ai.core.system.text_tables import WIDTH
from variant_ai.core.testing.variant_check import check_variant
from variant_ai.plugins import Registry

VARIANTS = ("crazyhouse", "xiangqi")


def small_registry() -> Registry:
    """Our plugins without outside ones and the user's folder."""
    return Registry(environ={"VARIANT_AI_PLUGINS": "", "VARIANT_AI_SPECS": ""})


@pytest.fixture(autouse=True)
def only_ours(monkeypatch: pytest.MonkeyPatch) -> Registry:
    found = small_registry()
    monkeypatch.setattr("variant_ai.plugins.registry", lambda: found)
    return found


def report(*args: str, status: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["doctor", "--seconds", "0", "--json", *args])
    assert result.exit_code == status, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def findings(found: dict[str, Any], name: str) -> list[dict[str, str]]:
    return [check for check in found["checks"] if check["name"] == name]


def test_a_healthy_installation() -> None:
    found = report()
    assert found["ok"] is True
    names = {check["name"] for check in found["checks"]}
    assert {"python", "packages", "cpu", "training", "providers", "plugins", "cache"} <= names
    for check in found["checks"]:
        assert check["status"] == "ok" or check["advice"], check


def test_text_says_the_same() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--seconds", "0"])
    assert result.exit_code == 0
    for check in report()["checks"]:
        assert check["name"] in result.stdout
        assert set(check["found"].split()) <= set(result.stdout.split())
    for line in result.stdout.splitlines():
        assert len(line) <= WIDTH or len(line.split()) <= 3 or line.lstrip()[0] in "→>", line


def test_a_broken_plugin_is_a_problem(only_ours: Registry) -> None:
    only_ours.register(SimpleNamespace(), "wreck", "0.1", "variant-ai-wreck")
    found = report(status=1)
    assert found["ok"] is False
    (check,) = findings(found, "plugin")
    assert "wreck" in check["found"] and "variant-ai-wreck" in check["advice"]


def test_a_package_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def broken(name: str, package: str | None = None) -> Any:
        if name == "onnxruntime":
            raise ImportError("libgomp.so.1: cannot open shared object file")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", broken)
    found = report(status=1)
    (check,) = findings(found, "import")
    assert "libgomp.so.1" in check["found"]
    assert "pip install" in check["advice"]
    assert findings(found, "providers") == []
    assert findings(found, "plugins") != []


def test_versions_out_of_range_and_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.metadata.requires",
        lambda name: ["click>=99", "no-such-package-at-all>=1", "pytest ; extra == 'dev'"],
    )
    found = report(status=1)
    told = [check["found"] + check["advice"] for check in findings(found, "package")]
    assert len(told) == 2
    assert "is not >=99" in told[0] and "pip install 'click>=99'" in told[0]
    assert "no-such-package-at-all is missing" in told[1]


def test_the_packages_of_training_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `make engine` torch is missing, which is a note: its import is not a second problem."""
    version, import_module = importlib.metadata.version, importlib.import_module

    def without_torch(name: str) -> str:
        if name == "torch":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    def not_found(name: str, package: str | None = None) -> Any:
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return import_module(name, package)

    monkeypatch.setattr("importlib.metadata.version", without_torch)
    monkeypatch.setattr(importlib, "import_module", not_found)
    found = report()
    (check,) = findings(found, "training")
    assert check["status"] == "note"
    assert check["found"] == "torch: not installed; nets can be played, but not trained"
    assert "pip install" in check["advice"]
    assert findings(found, "package") == findings(found, "import") == []


def test_a_gpu_that_onnxruntime_only_has_on_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: providers)
    which = shutil.which
    there = ("nvidia-smi", "/bin/nvidia-smi")
    monkeypatch.setattr(
        "shutil.which", lambda name, **how: dict([there]).get(name) or which(name, **how)
    )
    (_, check, *_) = findings(report(status=1), "providers")
    assert check["status"] == "problem" and "does not run on a GPU" in check["found"]
    assert "cuDNN" in check["advice"]


@pytest.mark.parametrize("torch_has_gpu", [False, True])
def test_a_gpu_that_only_torch_sees(monkeypatch: pytest.MonkeyPatch, torch_has_gpu: bool) -> None:
    import onnxruntime
    import torch

    from variant_ai.core.train.loop import devices

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    which = shutil.which
    monkeypatch.setattr(
        "shutil.which",
        lambda name, **how: "/bin/nvidia-smi" if name == "nvidia-smi" else which(name, **how),
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: torch_has_gpu)
    monkeypatch.setattr(devices, "choose_device", lambda name: torch.device("cpu"))
    (_, check) = findings(report(), "providers")
    assert check["status"] == "note"
    assert ("torch evaluates" in check["advice"]) == torch_has_gpu


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MIN_FREE", 1 << 80)
    (check,) = findings(report(status=1), "cache")
    assert "VARIANT_AI_CACHE_DIR" in check["advice"]


def test_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ENGINES", ("no-such-engine-at-all",))
    (check,) = findings(report(), "engine")
    assert check["status"] == "note" and "apt-get install" in check["advice"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_self_test_passes(variant: str, only_ours: Registry) -> None:
    report = check_variant(only_ours.rules(only_ours.variant(variant)), 0.2)
    assert report.agrees, report.first_difference
    assert report.positions > 0


def test_the_self_test_finds_rules_that_write_another_fen(only_ours: Registry) -> None:
    spec = only_ours.variant(VARIANTS[0])
    rules = only_ours.rules(spec)

    class Liar(type(rules)):  # type: ignore[misc]
        def fen(self, position: Any) -> str:
            fen: str = super().fen(position)
            return fen if position["ply"][0] == 0 else fen.replace(" w ", " b ")

    assert not check_variant(Liar(spec), 0.2).agrees


def test_a_failing_self_test_is_a_finding_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fall(rules: Any, seconds: float) -> Any:
        if rules.spec.variant == VARIANTS[0]:
            raise ZeroDivisionError("in the kernel")
        return SimpleNamespace(agrees=True, positions=1, seconds=0.1)

    monkeypatch.setattr("variant_ai.core.testing.variant_check.check_variant", fall)
    result = CliRunner().invoke(cli, ["doctor", "--json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    (check,) = findings(found, VARIANTS[0])
    assert check["status"] == "problem" and "in the kernel" in check["found"]
    assert findings(found, VARIANTS[1])[0]["status"] == "ok"
    assert {check["name"] for check in found["checks"]} >= set(builtin_specs())
