"""Plugins of the host itself: the specs that no plugin claims, and the user's own folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from variant_ai import __version__
from variant_ai.core.spec.catalogue import SPEC_SUFFIXES, builtin_net, builtin_specs
from variant_ai.plugins.hookspecs import API_VERSION, VariantEntry, hookimpl


class FolderPlugin:
    """Every YAML file of a folder is a variant called by the file's stem."""

    variant_ai_api = API_VERSION
    variant_ai_version = __version__

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(folders)

    @hookimpl
    def register_variants(self) -> list[VariantEntry]:
        return [
            VariantEntry(path.stem, path)
            for folder in self.folders
            if folder.is_dir()
            for path in sorted(folder.iterdir())
            if path.suffix in SPEC_SUFFIXES
        ]


class SpecsPlugin:
    """The specs and nets that come with the project; a variant with a plugin of its own is dropped later."""

    variant_ai_api = API_VERSION
    variant_ai_version = __version__

    @hookimpl
    def register_variants(self) -> list[VariantEntry]:
        return [
            VariantEntry(name, path, model=builtin_net(name))
            for name, path in builtin_specs().items()
        ]
