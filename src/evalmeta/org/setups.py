"""What answers in a run and what judges, in words that runs record: adapters and targets, without secrets."""

from __future__ import annotations

import shlex
import zlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from evalmeta.model.fingerprints import fingerprint
from evalmeta.model.redaction import hide_secrets
from evalmeta.model.run_options import Setup
from evalmeta.model.settings import (
    AgentforceSubject,
    CommandSubject,
    HttpSubject,
    LlmRater,
    OpenAISubject,
    PythonSubject,
    RecordedSubject,
    ReplaySubject,
    RulesRater,
)
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.model.settings import RaterSettings, SubjectSettings

_RECORDED: Final = "recorded answers"
_PIECE: Final = 1 << 20


def setup_of(
    subjects: Mapping[str, SubjectSettings], subject_name: str, rater: RaterSettings | None, *, root: Path
) -> Setup:
    """Return what answers and judges in a run of a project: an agent by its name, and a rater by its settings."""
    agent, version = agent_of(subjects, subject_name, root=root)
    judge, prompt = ("", "") if rater is None else rater_of(rater, root=root)
    return Setup(agent, version, judge, prompt, __version__)


def agent_of(subjects: Mapping[str, SubjectSettings], name: str, *, root: Path) -> tuple[str, str]:
    """Return what identifies an agent, and a fingerprint of its source, which is empty if that is not known.

    An agent without settings is a function with this name.
    """
    return described_agent(subjects.get(name) or PythonSubject.model_construct(adapter="python", target=name), root)


def described_agent(settings: SubjectSettings, root: Path) -> tuple[str, str]:
    """Return what `agent_of` returns, for an agent's settings."""
    text, files = _described(settings, root)
    return hide_secrets(text), _version(files)


def _described(settings: SubjectSettings, root: Path) -> tuple[str, list[Path]]:
    """Return an agent in words, and the files in which its source may be."""
    files: list[Path] = []
    match settings:
        case PythonSubject(target=target):
            text, files = f"python {target}", _module_files(target.partition(":")[0], root)
        case CommandSubject(command=command):
            words = [_relative(word, root) for word in command]
            text, files = f"command {shlex.join(words)}", [root / word for word in words]
        case HttpSubject(method=method, url=url):
            text = f"http {method} {_address(url)}"
        case OpenAISubject(model=model, url=url):
            text = f"openai {model} at {_address(url)}"
        case ReplaySubject(file=file):
            text, files = f"replay {_relative(str(file), root)}", [root / file]
        case AgentforceSubject(agent_id=agent_id, org=org, instance_url=url):
            text = f"agentforce {agent_id} in {org or _address(url)}"
        case RecordedSubject():
            text = _RECORDED
        case _:
            text = settings.adapter
    return text, files


def rater_of(settings: RaterSettings, *, root: Path) -> tuple[str, str]:
    """Return what identifies a rater, and a fingerprint of its models' prompts, which is empty if it has none."""
    match settings:
        case RulesRater(embed=embed):
            return f"rules with {embed}" if embed else "rules", ""
        case LlmRater():
            return _models(settings), _prompt(settings, root)
        case _:
            return settings.adapter, ""


def _models(settings: LlmRater) -> str:
    parts = [f"llm {'+'.join(settings.model_names)}", f"at {_address(settings.url)}" if settings.url else ""]
    samples = settings.sample_count
    parts += [f"with {samples} samples" if samples > 1 else ""]
    parts += ["" if settings.temperature == 0 else f"at temperature {settings.temperature}"]
    return " ".join(filter(None, parts))


def _prompt(settings: LlmRater, root: Path) -> str:
    from evalmeta.engine.raters.llm.prompts import PROMPT_VERSION, bind_rubric

    digest = bind_rubric(settings, root=root).digest
    return f"v{PROMPT_VERSION}, rubric {digest}" if digest else f"v{PROMPT_VERSION}"


def _module_files(module: str, root: Path) -> list[Path]:
    path = root.joinpath(*module.split("."))
    return [path.with_name(f"{path.name}.py"), path / "__init__.py"]


def _version(files: list[Path]) -> str:
    """Return a fingerprint of the files that exist; empty if there is none."""
    checksums = [checksum for file in files if (checksum := _checksum(file)) is not None]
    return fingerprint(*checksums) if checksums else ""


def _checksum(file: Path) -> int | None:
    checksum = 0
    try:
        with file.open("rb") as source:
            while data := source.read(_PIECE):
                checksum = zlib.crc32(data, checksum)
    except (OSError, ValueError):
        return None
    return checksum


def _relative(word: str, root: Path) -> str:
    """Return a word of a command: a path inside the project relative to it, and others without their folders."""
    inside = word.removeprefix(f"{root}/")
    return PurePath(inside).name if PurePath(inside).is_absolute() else inside


def _address(url: str) -> str:
    """Return a URL without a name, a password and a query, which may have secrets."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
