"""`variant-ai web`: the board in the browser."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai import __version__
from variant_ai.cli.common.console import note
from variant_ai.cli.common.options import COUNT, FiniteRange, examples
from variant_ai.core.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Collection

    from variant_ai.core.web.web_settings import WebSettings
    from variant_ai.core.web.work_room import OfferedNet


@click.command(
    epilog=examples(
        "variant-ai web",
        "# another net beside those that come with the variants",
        "variant-ai web --net mine=runs/mine --no-browser",
        "# for a classroom: anyone who knows the printed address",
        "variant-ai web --host 0.0.0.0 --allow-seconds 10",
    )
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, help="Port; 0: any free one.")
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Address to listen on. Others than this machine's own need the token that is printed.",
)
@click.option("--token", metavar="WORD", help="Token, instead of one made at random.")
@click.option("--browser/--no-browser", default=True, help="Open the page in the browser.")
@click.option(
    "--net",
    "nets",
    multiple=True,
    metavar="NAME=FILE",
    help="A net, or a run, that the page offers as an opponent; may be given several times.",
)
@click.option(
    "--player",
    "players",
    multiple=True,
    metavar="PLAYER",
    help="Another opponent, written as for `match`, such as 'fairy-stockfish;name=Fairy'; may be "
    "given several times.",
)
@click.option(
    "--runs",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder whose runs the page shows; may be given several times.  [default: runs]",
)
@click.option("--workers", type=COUNT, default=1, help="Processes that search.")
@click.option(
    "--allow-nodes", "nodes", type=COUNT, default=1_000_000, help="Most nodes of one search."
)
@click.option(
    "--allow-seconds",
    "seconds",
    type=FiniteRange(min=0.01),
    default=600.0,
    help="Longest search, in seconds.",
)
@click.option(
    "--allow-searches",
    "searches",
    type=COUNT,
    default=4,
    help="Searches of one visitor that run or wait.",
)
@click.option(
    "--allow-visitors", "visitors", type=COUNT, default=200, help="Pages that may be open at once."
)
def command(
    port: int,
    host: str,
    token: str | None,
    browser: bool,
    nets: tuple[str, ...],
    players: tuple[str, ...],
    runs: tuple[Path, ...],
    workers: int,
    **limits: Any,
) -> None:
    """Play, analyse and watch nets learn in the browser, in any variant.

    The page comes from this program alone, and only this machine can open it unless --host says
    otherwise. docs/web.md is the manual.
    """
    from variant_ai.core.web.web_settings import VisitorLimits, WebSettings, is_loopback

    folders = runs or tuple(folder for folder in (Path("runs"),) if folder.is_dir())
    for folder in folders:
        if not folder.is_dir():
            raise SettingError(f"--runs: there is no folder {folder}")
    settings = WebSettings(
        host=host,
        port=port,
        token=_token(token, is_local=is_loopback(host)),
        workers=workers,
        runs=folders,
        limits=VisitorLimits(**limits),
    )
    offered = _nets(nets)
    _run(settings, offered, _players(players, offered), browser=browser)


def _token(given: str | None, *, is_local: bool) -> str:
    if given is not None:
        if len(given) < 8 or not given.isascii() or not given.isprintable() or " " in given:
            raise SettingError("--token: at least 8 letters and digits are expected")
        return given
    if is_local:
        return ""
    import secrets

    return secrets.token_urlsafe(18)


def _nets(given: tuple[str, ...]) -> dict[str, OfferedNet]:
    """Return the nets by their names. Raises SettingError."""
    from variant_ai.cli.common.search_options import name_values
    from variant_ai.core.spec.catalogue import home_path
    from variant_ai.core.web.work_room import OfferedNet

    found: dict[str, OfferedNet] = {}
    for one in given:
        ((name, text),) = name_values([one], "--net").items()
        path = home_path(text).absolute()
        if not path.exists():
            raise SettingError(f"--net {name}: there is no net {text}")
        _require_free(name, found, f"--net {one}")
        found[name] = OfferedNet.read(path)
    return found


def _require_free(name: str, taken: Collection[str], option: str) -> None:
    """Raise SettingError if the page has another opponent of a name, which it would play instead."""
    from variant_ai.core.web.work_room import NETS, RUN

    accepted = "NAME=FILE" if option.startswith("--net") else "PLAYER;name=NAME"
    if name in NETS or name in taken:
        raise SettingError(
            f"{option}: the page has another opponent {name}; give this one a name of its own, {accepted}"
        )
    if name.startswith(RUN):
        raise SettingError(
            f"{option}: {RUN} begins the names of runs; write another name, {accepted}"
        )


def _players(given: tuple[str, ...], nets: Collection[str]) -> dict[str, str]:
    """Return the texts of players by their names. nets: names of other opponents. Raises SettingError,
    EngineError, DataError."""
    from variant_ai.cli.common.player_options import require_player
    from variant_ai.core.arena.players.player_spec import parse_player

    found: dict[str, str] = {}
    for text in given:
        player = parse_player(text)
        require_player(player, None)
        _require_free(player.label, [*nets, *found], f"--player {text}")
        found[player.label] = text
    return found


def _run(
    settings: WebSettings, nets: dict[str, OfferedNet], players: dict[str, str], *, browser: bool
) -> None:
    import asyncio
    import contextlib

    from variant_ai.core.web.web_server import make_app, serve
    from variant_ai.core.web.work_room import WorkRoom
    from variant_ai.core.web.worker_process import python_command

    listening = _listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    address = _address(settings, port)

    def worker(kind: str) -> list[str]:
        return python_command(
            "variant_ai.cli.play.web_worker", kind, *(str(f.absolute()) for f in settings.runs)
        )

    async def run() -> None:
        room = WorkRoom(settings, worker, version=__version__, nets=nets, players=players)
        await serve(make_app(settings, room), settings, [listening])

    note(f"the page is at {address}  (Ctrl-C ends it)")
    if browser:
        import webbrowser

        webbrowser.open(address)
    with contextlib.closing(listening):
        asyncio.run(run())


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises SettingError."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, _, _, _, where = found[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":  # on Windows it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(256)
    except OSError as error:
        hint = "; --port 0 takes any free port" if error.errno == errno.EADDRINUSE else ""
        raise SettingError(
            f"cannot listen on {host!r}, port {port}: {error.strerror}{hint}"
        ) from None
    except UnicodeError:  # of the encoding of names, such as for an empty part
        raise SettingError(f"cannot listen on {host!r}: it is not a name of a machine") from None
    listening.setblocking(False)
    return listening


def _address(settings: WebSettings, port: int) -> str:
    host = settings.host
    if host in ("0.0.0.0", "::", ""):
        host = socket.gethostname()
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    token = f"?token={settings.token}" if settings.token else ""
    return f"http://{host}:{port}/{token}"
