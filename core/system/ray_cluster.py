"""A Ray cluster: the connection to it, and a pool of worker processes on all its machines.

Ray is imported only to connect. Addresses: `local`, a cluster that is started on this machine and ends
with the process; `auto`, the one that this machine belongs to; HOST:PORT or ray://HOST:PORT.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from variant_ai.core.errors import VariantAIError
from variant_ai.core.system.interrupts import handlers_kept
from variant_ai.core.system.missing_packages import missing_packages_explained

P = ParamSpec("P")
T = TypeVar("T")

LOCAL = "local"
"""Address of a cluster that is started on this machine and ends with the process."""
RETRIES = 10
"""Times that a task is run again because its process or machine died."""


def connect(address: str) -> Any:
    """Connect this process to a cluster, and return the module `ray`.

    Raises VariantAIError if Ray is not installed or there is no cluster at the address.
    """
    with missing_packages_explained():
        import ray
    if ray.is_initialized():
        return ray
    try:
        with handlers_kept():  # Ray's own answer to SIGTERM saves nothing
            ray.init(
                address=address,
                include_dashboard=False if address == LOCAL else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except Exception as error:  # Ray raises all kinds, also Exception itself
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if address == LOCAL:
            message = f"Ray cannot start a cluster on this machine ({reason})"
        else:
            message = (
                f"no Ray cluster at {address!r} ({reason}); start one with `ray start --head`, or use "
                f"`{LOCAL}`"
            )
        raise VariantAIError(message) from None
    return ray


def processors_of(ray: Any) -> float:
    """Number of processors of the machines that the cluster has now."""
    return float(ray.cluster_resources().get("CPU", 0.0))


def cause_of(error: Any) -> Exception:
    """Return the user's error behind a RayTaskError, or the RayTaskError itself."""
    cause = error.cause
    return cause if isinstance(cause, VariantAIError) else error


class ClusterPool(Executor):
    """Worker processes on the machines of a cluster, used like `WorkerPool`.

    Tasks whose process or machine died are run again. With a task that cannot be completed its future
    raises BrokenExecutor. Machines may join and leave.
    """

    def __init__(
        self, ray: Any, initialiser: Callable[..., None] | None = None, initargs: Any = ()
    ) -> None:
        """ray: the module, connected. initialiser: called with `initargs` in each process before its
        first task, and again if another pool of this program has used the process since."""
        self._ray = ray
        self._key = f"{os.getpid()}-{next(_keys)}"
        self._setup = self._ray.put((initialiser, initargs))
        self._task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(_run)
        self._references: dict[Future[Any], Any] = {}

    def submit(
        self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs
    ) -> Future[T]:
        # In a list the reference reaches the task as it is: the setup is sent once to a process.
        reference = self._task.remote(self._key, [self._setup], function, arguments, named)
        future: Future[T] = Future()
        self._references[future] = reference
        reference.future().add_done_callback(partial(self._finish, future))
        return future

    def _finish(self, future: Future[Any], done: Future[Any]) -> None:
        self._references.pop(future, None)
        if not future.set_running_or_notify_cancel():
            return
        error = done.exception()
        if error is None:
            future.set_result(done.result())
        elif isinstance(error, self._ray.exceptions.RayTaskError):
            future.set_exception(cause_of(error))
        else:
            future.set_exception(BrokenExecutor(str(error).splitlines()[0]))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the tasks: with `cancel_futures` at once, otherwise, if `wait`, when they are done."""
        for future, reference in list(self._references.items()):
            if cancel_futures:
                future.cancel()
                self._ray.cancel(reference, force=True)
            elif wait:
                future.exception()
        self._setup = None


_keys = itertools.count()


class _Process:
    """State of a worker process."""

    key = ""
    """Of the pool whose initialiser was called last."""


def _run(
    key: str,
    setup: list[Any],
    function: Callable[..., T],
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> T:
    """Run a task in a worker process."""
    if _Process.key != key:
        import ray

        initialiser, initargs = ray.get(setup[0])
        if initialiser is not None:
            initialiser(*initargs)
        _Process.key = key
    return function(*arguments, **named)
