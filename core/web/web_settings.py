"""Settings of the web server: address, token, and limits for one visitor and for all."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class VisitorLimits:
    """Bounds of the work of visitors. A request beyond them is rejected or cut down."""

    nodes: int = 1_000_000
    """Nodes of one search."""
    seconds: float = 600.0
    """Seconds of one search."""
    slice: float = 2.0
    """Seconds after which a search ends early if another visitor waits for one."""
    searches: int = 4
    """Searches of one visitor that run or wait; as many questions of each other type about a net."""
    questions: int = 64
    """Questions of one visitor about rules that wait for their answers."""
    visitors: int = 200
    """Open connections."""
    message: int = 400_000
    """Characters of a message of the page."""
    specs: int = 200
    """Specs of visitors that are kept at a time."""


@dataclass(frozen=True)
class WebSettings:
    """Settings of one server."""

    host: str = "127.0.0.1"
    port: int = 8080
    token: str = ""
    """Word that a browser must know; empty: none, for this machine only."""
    workers: int = 1
    """Processes that search."""
    runs: tuple[Path, ...] = ()
    """Folders in which run folders are looked for."""
    limits: VisitorLimits = VisitorLimits()

    @property
    def is_local(self) -> bool:
        """True if only programs of this machine can connect."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return True for an address that only this machine can reach: `localhost` or one such as
    127.0.0.2, also in brackets."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
