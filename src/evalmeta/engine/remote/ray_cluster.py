"""Workers on Ray: an actor for each CPU of a cluster, which Ray places, supervises and starts again."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta import limits
from evalmeta.engine.event_loop import Threads
from evalmeta.engine.process import exits_refused, rare_collections
from evalmeta.engine.project_code import imports_kept
from evalmeta.engine.remote.crew import Crew, WorkerLost
from evalmeta.engine.remote.worker import RemoteWorker
from evalmeta.errors import ClusterError, UsageError
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

_INSTALL: Final = "pip install 'evalmeta[ray]'"
# The kernel ends the processes of a cluster that was started here with the thread that started them.
_THREAD: Final = Threads()
_ADDRESS: Final = re.compile(r"ray://[^\s/?#@]+:\d{1,5}", re.ASCII)
_PROBE_SECONDS: Final = 5.0
# What a project's folder has that no worker needs: state, secrets, and environments. Settings may have secrets, too:
# workers receive those that they need with the run, which Ray writes nowhere.
_LEFT_OUT: Final = (
    ".evalmeta",
    "/evalmeta.toml",
    ".git",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".env*",
    "*.pem",
    "*.key",
)


def check_address(on: str) -> None:
    """Check that `on` names a cluster that can be reached; raise UsageError, or ClusterError with a way out."""
    if on != "ray" and not _ADDRESS.fullmatch(on):
        raise UsageError(
            f"{on!r} does not name a cluster", actions=["Write ray, or ray://HOST:PORT with the port of Ray's clients."]
        )
    try:
        import ray  # noqa: F401 - whether it is installed
    except ImportError:
        raise UsageError("running on Ray requires the extra 'ray'", actions=[f"Install it: {_INSTALL}"]) from None
    address = on if on != "ray" else os.environ.get("RAY_ADDRESS", "")
    if address and (why := _unreachable(address)):
        raise ClusterError(
            f"no cluster of Ray answers at {address}: {why}",
            actions=["Correct the address, or start the cluster: ray start --head --ray-client-server-port PORT"],
        )


def _unreachable(address: str) -> str:
    """Return why nothing accepts connections at an address; empty if something does."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS).close()
    except (OSError, ValueError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""


def cluster_here() -> str:
    """Return the address of the cluster that runs on this machine; empty if none does.

    Ray itself would wait a minute for a cluster that has ended, and then end this process. A cluster that another user
    names in the shared folder would receive the project's code and secrets.
    """
    file = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")  # noqa: S108 - where Ray has it
    try:
        is_own = not hasattr(os, "getuid") or file.lstat().st_uid == os.getuid()
        address = file.read_text(encoding="utf-8").strip() if is_own else ""
    except OSError:
        return ""
    return address if address and not _unreachable(address) else ""


class _Remote(Protocol):
    """A method of an actor."""

    def remote(self, *arguments: object) -> Awaitable[object]: ...


class _Actor(Protocol):
    """A handle of a `RemoteWorker` in a cluster."""

    greet: _Remote
    put: _Remote
    take: _Remote
    where: _Remote


class _WorkerActor(RemoteWorker):
    """A worker in the folder to which Ray has brought the project."""

    def __init__(self) -> None:
        super().__init__(Path.cwd())
        # As long as the process lives: nothing else runs in it.
        exits_refused.begin()
        rare_collections.begin()
        self._imports = imports_kept()
        self._imports.__enter__()

    async def where(self) -> tuple[str, str]:
        """Return the machine, and the version of evalmeta there."""
        return socket.gethostname(), __version__


class _RayWorker:
    def __init__(self, actor: _Actor) -> None:
        self._actor = actor
        self.name = "a node"

    async def greet(self, session: str) -> None:
        # Without a deadline: Ray may have no free CPU, and the crew knows whether there is another worker.
        await _called(self._actor.greet.remote(session), None)
        self.name, version = cast("tuple[str, str]", await _called(self._actor.where.remote(), _PROBE_SECONDS))
        if version != __version__:
            raise ClusterError(
                f"{self.name} has evalmeta {version}, and this process {__version__}",
                actions=[f"Install the same version on all nodes: {_INSTALL.replace(']', f']=={__version__}')}"],
            )

    async def put(self, session: str, orders: bytes) -> None:
        await _called(self._actor.put.remote(session, orders), limits.WORKER_SILENCE_SECONDS)

    async def take(self, session: str, seconds: float) -> bytes:
        taken = self._actor.take.remote(session, seconds)
        return cast("bytes", await _called(taken, limits.WORKER_SILENCE_SECONDS + seconds))


async def _awaited(call: Awaitable[object]) -> object:
    return await call


async def _called(call: Awaitable[object], seconds: float | None) -> object:
    """Return the result of a call of an actor; raise WorkerLost if it or its node has died, or does not answer."""
    from ray.exceptions import RayError, RayTaskError

    # Ray's client does not bear that what it returns is cancelled.
    pending = asyncio.ensure_future(_awaited(call))
    pending.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(pending)
    except TimeoutError:
        raise WorkerLost from None
    except RayTaskError as error:
        raise ClusterError(f"a worker failed: {error}") from None
    except RayError as error:
        text = str(error)
        if "ModuleNotFoundError" in text or "No module named" in text:
            module = text.rpartition("No module named ")[2].splitlines()[0].strip().rstrip(".") or "a module"
            raise ClusterError(
                f"a node lacks the module {module}", actions=[f"Install evalmeta on all nodes: {_INSTALL}"]
            ) from None
        raise WorkerLost(text) from None


@asynccontextmanager
async def ray_crew(on: str, root: Path, *, concurrency: int) -> AsyncIterator[Crew]:
    """Start workers in a cluster for a project: one for each CPU, and not more than cases run at the same time."""
    import ray

    await _connect(on, root)
    options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
    kind = ray.remote(**options)(_WorkerActor)
    cpus = int(ray.cluster_resources().get("CPU", 0))
    actors = [kind.remote() for _ in range(max(1, min(cpus, concurrency)))]
    crew = Crew([_RayWorker(actor) for actor in actors])
    try:
        await crew.open()
        yield crew
    finally:
        await crew.close()
        for actor in actors:
            with suppress(Exception):
                ray.kill(actor)


async def _connect(on: str, root: Path) -> None:
    """Connect this process to the cluster, or start one on this machine if none is named and none runs here."""
    # Ray reads these when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        return
    settings: dict[str, object] = {
        "runtime_env": {"working_dir": str(root), "excludes": [*_LEFT_OUT]},
        "log_to_driver": False,
        "logging_level": "ERROR",
    }

    address = on if on != "ray" else os.environ.get("RAY_ADDRESS") or cluster_here()
    if not address:
        # Its processes end with this one.
        settings |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        async with asyncio.timeout(limits.CLUSTER_SECONDS):
            await _THREAD.call(lambda: ray.init(address=address or "local", **settings))
    except TimeoutError:
        raise ClusterError(f"{on} did not answer within {limits.CLUSTER_SECONDS:g} s") from None
    except Exception as error:
        raise ClusterError(f"{on} cannot be used: {error}") from error
