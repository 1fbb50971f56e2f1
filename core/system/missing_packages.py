"""Packages that may be missing: those of training, and those of extras."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from variant_ai.core.errors import VariantAIError

TRAINING = ("torch", "safetensors", "tensorboard", "matplotlib")
"""Packages that an installation for playing alone leaves out (`requirements-engine.txt`)."""
EXTRAS = {
    "books": ("chess",),
    "ray": ("ray",),
    "testing": ("hypothesis", "pytest"),
    "tune": ("optuna", "scipy"),
    "web": ("starlette", "uvicorn", "websockets"),
}
"""Extra of variant-ai -> the modules for which a command may ask."""


@contextlib.contextmanager
def missing_packages_explained() -> Iterator[None]:
    """Turn a failed import of one of these packages into VariantAIError, which says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        how = how_to_install(package)
        if not how:
            raise
        raise VariantAIError(f"this needs {package}; install it with: {how}") from error


def how_to_install(package: str) -> str:
    """Return the command that installs a package; empty if every installation should have it."""
    if package in TRAINING:
        return f"pip install {' '.join(TRAINING)}"
    extras = (extra for extra, packages in EXTRAS.items() if package in packages)
    return "".join(f"pip install 'variant-ai[{extra}]'" for extra in extras)


def installed_version(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None
