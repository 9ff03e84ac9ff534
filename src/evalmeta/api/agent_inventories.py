"""The topics and tools of agents: those in files, or else those that the agent lists, and what it listed last."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from evalmeta import limits
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.interfaces import ListedSubject
from evalmeta.engine.subjects import bind, declared_settings
from evalmeta.engine.subjects.inventories import no_parts
from evalmeta.errors import EvalmetaError, NotFound, UsageError, nearest_word
from evalmeta.model.coverage import Inventory
from evalmeta.org.subjects import agent_settings, described_agent
from evalmeta.package.agent_files import agents_of, ignored_script
from evalmeta.package.files import put_file, read_file
from evalmeta.package.trust import state_file
from evalmeta.report.text import and_more

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.package.project import Project

_SHOWN_AGENTS: Final = 5
_FOLDER: Final = "agent_parts"


@dataclass(frozen=True)
class KeptInventory:
    """What an agent listed, when, and what identified it and its source then."""

    agent: str
    inventory: Inventory
    read_at: float
    identity: tuple[str, str]


_KEPT: Final = TypeAdapter(KeptInventory)


def find_inventory(project: Project, agent: str) -> Inventory:
    """Return the parts of an agent: those in its files, or else those that it lists, which may run its code.

    Raises:
        NotFound: the project has no such agent, or the agent does not list its parts, or has none.
        EvalmetaError: its files cannot be read, or it cannot be imported, started or asked.
    """
    files = agents_of(project)
    known = files.agents()
    inventory = files.inventory(agent) if agent in known else _ask(project, agent, known)
    if not inventory.parts:
        raise NotFound(f"the agent {agent} has no topics, actions or tools, so there is nothing to cover")
    return inventory


def listing_agents(project: Project) -> list[str]:
    """Return the agents of the settings that may list their parts when they are asked, except those in files."""
    known = agents_of(project).agents()
    subjects = project.settings.subjects.items()
    return [name for name, settings in subjects if name not in known and not settings.parts_unknown]


def kept_inventory(project: Project, agent: str) -> KeptInventory | None:
    """Return what an agent listed last in this state folder; None if that is not known, or damaged."""
    try:
        file = state_file(project.state_dir, _FOLDER, _file_name(agent))
        kept = _KEPT.validate_json(read_file(file, max_bytes=limits.MAX_KEPT_PARTS_BYTES))
    except (EvalmetaError, OSError, ValidationError):
        return None
    return kept if kept.agent == agent else None


def has_changed(project: Project, kept: KeptInventory) -> bool:
    """Return whether the settings or the source of an agent are not those of its list any more."""
    settings = project.settings.subjects.get(kept.agent)
    return settings is None or described_agent(settings, project.root) != kept.identity


def _ask(project: Project, agent: str, known: Sequence[str]) -> Inventory:
    settings = agent_settings(project.settings.subjects, agent, root=project.root)
    if settings is None:
        names = list(dict.fromkeys([*known, *project.settings.subjects]))
        near = nearest_word(agent, names)
        ignored = ignored_script(project, agent)
        actions = [ignored] if ignored else [f"Did you mean {near}?"] if near else []
        actions += [f"Name one of these agents: {and_more(names, _SHOWN_AGENTS)}."] if names and not near else []
        raise NotFound(f"there is no agent {agent!r} in the project or in evalmeta.toml", actions=actions)
    if why := declared_settings(settings).parts_unknown:
        raise NotFound(
            f"the topics and tools of {agent} are not known (adapter {settings.adapter}): {why}",
            actions=["docs/coverage.md says which agents have topics and tools that evalmeta can read."],
        )
    identity = described_agent(settings, project.root)
    # What the agent prints while it is imported must not mix with the output.
    with redirect_stdout(sys.stderr):
        inventory = run_to_end(_list(bind(settings, root=project.root), agent))
    _keep(project.state_dir, KeptInventory(agent, inventory, time.time(), identity))
    return inventory


async def _list(subject: Subject, agent: str) -> Inventory:
    try:
        if not isinstance(subject, ListedSubject):
            raise no_parts(f"the target of {agent}, a function or an object with open,")
        async with asyncio.timeout(limits.DOCTOR_SECONDS):
            return await subject.inventory()
    except TimeoutError:
        raise UsageError(f"the agent {agent} did not list its tools within {limits.DOCTOR_SECONDS:g} s") from None
    finally:
        await subject.close()


def _keep(state_dir: Path, kept: KeptInventory) -> None:
    """Write what an agent listed; descriptions and examples, which coverage does not need, are left out."""
    parts = tuple(part._replace(description="", utterance="") for part in kept.inventory.parts)
    value = KeptInventory(kept.agent, Inventory(parts, kept.inventory.start), kept.read_at, kept.identity)
    put_file(
        state_file(state_dir, _FOLDER, _file_name(kept.agent)), orjson.dumps(_KEPT.dump_python(value, mode="json"))
    )


def _file_name(agent: str) -> str:
    """Return the name of an agent's file; the name of the agent may have any characters."""
    return f"{hashlib.sha256(agent.encode()).hexdigest()[:32]}.json"
