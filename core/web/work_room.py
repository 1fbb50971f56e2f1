"""The processes behind all visitors, and the specs that visitors have written.

board     rules of the variants of this installation
guest     rules of visitors' specs: one that makes it slow or ends it harms no other game
reader    run folders
search    nets and searches, by the schedule
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.system.folders import temporary_folder
from variant_ai.core.web import Json
from variant_ai.core.web.client_messages import MAX_MOVES
from variant_ai.core.web.search_schedule import SearchSchedule
from variant_ai.core.web.web_settings import WebSettings
from variant_ai.core.web.worker_process import WorkerProcess

OWN = "own:"
"""Prefix of the names of visitors' specs."""
RUN = "run:"
"""Prefix of the names of runs' nets."""
CHECK_SECONDS = 30.0
RENEWED_AFTER = 400
"""Specs of visitors after whose check their process is started again."""
PLAYER = "player:"
"""Prefix of a player's text where a net is named."""
PACKAGED, MATERIAL, UNIFORM, RANDOM = "packaged", "material", "uniform", "random"
NETS = {
    PACKAGED: "The net of the variant",
    MATERIAL: "No net: counts the pieces",
    UNIFORM: "No net: search alone",
    RANDOM: "A net that has learnt nothing",
}


@dataclass(frozen=True)
class OfferedNet:
    """A net that the page offers under a name."""

    path: Path
    """Of a file, or of a folder with files or a run."""
    variants: Sequence[str] = ()
    """Names of the variants that it is of; empty: unknown."""

    @classmethod
    def read(cls, path: Path) -> OfferedNet:
        """Return a net with the variants that its files name, none if they cannot be read: then the
        search reports the mistake."""
        try:
            return cls(path, sorted(_variants(path)))
        except (DataError, OSError):
            return cls(path)

    def require(self, name: str, variant: str) -> None:
        """Raise DataError if the net is of other variants. name: of the net, for the message."""
        if self.variants and variant not in self.variants:
            known = " and ".join(self.variants)
            raise DataError(f"net: {name} is a net for {known}, not for {variant}")


@dataclass(frozen=True)
class _Spec:
    """A visitor's spec without mistakes."""

    text: str
    name: str
    """Its `variant`."""


class WorkRoom:
    """Everything that visitors share. Used in one event loop."""

    def __init__(
        self,
        settings: WebSettings,
        command: Callable[[str], list[str]],
        *,
        version: str,
        nets: Mapping[str, OfferedNet] | None = None,
        players: Mapping[str, str] | None = None,
    ) -> None:
        """command: the command of a worker by its kind, `board`, `reader` or `search`. nets: more
        nets by the names that the page shows. players: texts of `match` by such names."""
        self.settings = settings
        self._version = version
        self._nets = dict(nets or {})
        self._players = {name: f"{PLAYER}{text}" for name, text in (players or {}).items()}
        self._board = WorkerProcess(command("board"), "the process that knows the rules")
        self._guest = WorkerProcess(command("board"), "the process that knows your variant")
        self.reader = WorkerProcess(command("reader"), "the process that reads runs")
        searchers = [
            WorkerProcess(command("search"), "the process that searches")
            for _ in range(settings.workers)
        ]
        self.schedule = SearchSchedule(searchers, settings.limits.slice)
        self._folder = temporary_folder("variant-ai-web-")
        self._specs: OrderedDict[str, _Spec] = OrderedDict()
        """By the digest of their text."""
        self._checks = 0
        self._variants: Json | None = None
        self._runs: dict[str, str] = {}
        self._listing = asyncio.Lock()

    def start(self) -> None:
        """Begin to work. The list of variants takes a moment: it is made before the first page asks."""
        self.schedule.start()
        self._first = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        with contextlib.suppress(VariantAIError):
            await self.variants()

    async def close(self) -> None:
        """End all processes."""
        self._first.cancel()
        await self.schedule.close()
        await asyncio.gather(self._board.close(), self._guest.close(), self.reader.close())
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- variants ------------------------------------------------------------------------------

    async def greeting(self) -> Json:
        """Return version, variants, nets and limits for a new page. `net_variants` has the
        variants of each net that is not of all; `message` the characters of the longest message."""
        limits = self.settings.limits
        return {
            "version": self._version,
            **await self.variants(),
            "nets": {**NETS, **{name: name for name in self._nets}},
            "net_variants": {
                name: list(net.variants) for name, net in self._nets.items() if net.variants
            },
            "players": list(self._players),
            "runs": bool(self.settings.runs),
            "limits": {
                "nodes": limits.nodes,
                "seconds": limits.seconds,
                "moves": MAX_MOVES,
                "message": limits.message,
            },
        }

    async def variants(self) -> Json:
        """Return the variants of this installation."""
        async with self._listing:
            if self._variants is None:
                self._variants = await self._board.ask({"action": "variants"}, CHECK_SECONDS)
            return self._variants

    def board_of(self, variant: str) -> WorkerProcess:
        """Return the process that knows a variant."""
        return self._guest if variant.startswith(OWN) else self._board

    def place_of(self, variant: str) -> str:
        """Return a worker's name for a variant: its own, or the path of a visitor's spec.

        Raises UnknownNameError; DataError for a spec that the server does not have (any more).
        """
        if not variant.startswith(OWN):
            known = [one["name"] for one in (self._variants or {"variants": []})["variants"]]
            if known and variant not in known:
                raise UnknownNameError("variant", variant, known)
            if not variant.replace("-", "").replace("_", "").isalnum():
                raise DataError("variant: letters, digits, - and _ are expected")
            return variant
        digest = variant.removeprefix(OWN)
        if digest not in self._specs:
            raise DataError(f"{variant}: the server does not have this spec; send it again")
        self._specs.move_to_end(digest)
        return str(self._path(digest))

    def source_of(self, variant: str) -> str:
        """Return the text of a visitor's spec. Raises DataError."""
        self.place_of(variant)
        return self._specs[variant.removeprefix(OWN)].text

    async def add_spec(self, text: str) -> Json:
        """Check a visitor's spec: return its `mistakes`, or its drawing and the name `variant` under
        which it can be played."""
        digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        self._checks += 1
        # two visitors may send the same text at the same time
        path = self._folder / f"check-{self._checks}.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            if self._checks % RENEWED_AFTER == 0:  # it keeps all specs that it has read
                await self._guest.close()
            answer = await self._guest.ask({"action": "check", "path": str(path)}, CHECK_SECONDS)
            if not answer["mistakes"]:
                if digest not in self._specs:
                    path.replace(self._path(digest))
                self._specs[digest] = _Spec(text, answer["name"])
                self._specs.move_to_end(digest)
                answer["variant"] = f"{OWN}{digest}"
        finally:
            path.unlink(missing_ok=True)
        while len(self._specs) > self.settings.limits.specs:
            gone, _ = self._specs.popitem(last=False)
            self._path(gone).unlink(missing_ok=True)
        return answer

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.yaml"

    # --- nets ----------------------------------------------------------------------------------

    def net(self, name: str | None, variant: str) -> str:
        """Return a worker's name for a net: `packaged`, an evaluator without a net, a path, or a player.

        Raises UnknownNameError; DataError for a net of another variant.
        """
        if name is None:
            return PACKAGED
        if name in NETS:
            return name
        if name.startswith(RUN) and name.removeprefix(RUN) in self._runs:
            return self._runs[name.removeprefix(RUN)]
        if name in self._players:
            return self._players[name]
        if name not in self._nets:
            runs = [f"{RUN}{run}" for run in self._runs]
            raise UnknownNameError("net", name, [*NETS, *self._nets, *self._players, *runs])
        net, spec = self._nets[name], self._specs.get(variant.removeprefix(OWN))
        net.require(name, variant if spec is None else spec.name)
        return str(net.path)

    async def learn_net(self, name: str | None) -> None:
        """Ask for the runs if a net is that of an unknown run: the page may have its name from
        before a restart of the server. Raises VariantAIError."""
        if name is not None and name.startswith(RUN) and name.removeprefix(RUN) not in self._runs:
            await self.runs()

    async def runs(self) -> Json:
        """Return the runs below the folders of the settings; their nets can be named from now on."""
        found = await self.reader.ask({"action": "runs"}, CHECK_SECONDS)
        self._runs = found.pop("paths")
        return found


def _variants(path: Path) -> set[str]:
    """Return the variants of a net's files. Raises DataError, OSError."""
    # here, since a server without such nets does without numpy
    from variant_ai.core.inference.model_file import read_model_file
    from variant_ai.core.train.run.run_folder import CONFIG, run_config

    if (path / CONFIG).is_file():
        return {run_config(path).variant}
    files = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    found = {read_model_file(file).info.variant for file in files}
    return set() if "" in found else found  # "": a file without metadata of ours
