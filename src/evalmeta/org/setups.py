"""What answers in a run and what judges, in words that runs record: adapters and targets, without secrets."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.llm.settings import LlmRater
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.model.fingerprints import fingerprint
from evalmeta.model.redaction import address_in_words, hide_secrets
from evalmeta.model.run_options import Setup
from evalmeta.model.settings import RulesRater
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.model.settings import RaterSettings, SubjectSettings

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
    text, files = settings.identity(root)
    return hide_secrets(text), _version(files)


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
    parts = [f"llm {'+'.join(settings.model_names)}", f"at {address_in_words(settings.url)}" if settings.url else ""]
    samples = settings.sample_count
    parts += [f"with {samples} samples" if samples > 1 else ""]
    parts += ["" if settings.temperature == 0 else f"at temperature {settings.temperature}"]
    return " ".join(filter(None, parts))


def _prompt(settings: LlmRater, root: Path) -> str:
    from evalmeta.engine.raters.llm.prompts import PROMPT_VERSION, bind_rubric

    digest = bind_rubric(settings, root=root).digest
    return f"v{PROMPT_VERSION}, rubric {digest}" if digest else f"v{PROMPT_VERSION}"


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
