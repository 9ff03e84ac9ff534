"""Agents and raters: those that settings bind to names, what identifies them in runs, and the agents of an org."""

from __future__ import annotations

import hashlib
import re
import zlib
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from evalmeta import limits
from evalmeta.client.logins import user_logins
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.subjects import bind, declared_settings
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.errors import EvalmetaError, NotFound, SettingsError, SubjectNotBound
from evalmeta.model.fingerprints import fingerprint
from evalmeta.model.login import SignedIn
from evalmeta.model.redaction import address_in_words, hide_secrets
from evalmeta.model.registry import TEST_TYPES
from evalmeta.model.run_options import OFFLINE_RATER, RunOptions, Setup
from evalmeta.model.settings import RaterSettings, RulesRater, Settings, SubjectSettings, find_subject
from evalmeta.package.agent_files import ignored_script
from evalmeta.package.files import key_name
from evalmeta.package.project import PROJECT_FILE, SETTINGS_FILE, find_project
from evalmeta.package.settings import load_settings
from evalmeta.plugins import load_all
from evalmeta.store.database import with_checksum
from evalmeta.store.users import Agents, AgentState
from evalmeta.version import __version__
from evalmeta.xmlio.definitions import subject_of
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.org.organization import Organization


class SourceSettings(Protocol):
    """Returns the settings of an agent whose source is in a project (the entry points `project_agents`)."""

    def __call__(self, root: Path, name: str) -> SubjectSettings | None:
        """Return None if the project has no such agent."""
        ...


_PYTHON_TARGET: Final = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
_AGENTFORCE_LINES: Final = """\
adapter = "agentforce"
agent_id = "0Xx000000000000"  # the Id of the agent's BotDefinition
org = "ORG"  # as in `evalmeta org list`"""
_IN_ORG: Final = "Run the tests in your Salesforce org: evalmeta deploy -o ORG, then evalmeta test run -o ORG --wait"
# As in README.md; it needs no extra.
RATER_LINES: Final = """\
adapter = "llm"
model = "gpt-4.1-mini"
url = "https://api.openai.com/v1"
api_key_env = "OPENAI_API_KEY\""""


def bind_subject(
    subjects: Mapping[str, SubjectSettings],
    subject_name: str,
    *,
    root: Path,
    subject_type: str = "AGENT",
    settings_name: str = SETTINGS_FILE,
    receives: bool = True,
) -> Subject:
    """Return the subject that settings bind to a name; raise SubjectNotBound, or SettingsError if it cannot be used.

    Without `receives`, its traces are not received.
    """
    settings = agent_settings(subjects, subject_name, root=root)
    if settings is None and _PYTHON_TARGET.fullmatch(subject_name):
        # A test spec names a function without settings: subject: module:function.
        settings = PythonSubject(adapter="python", target=subject_name)
    if settings is None:
        raise unbound_subject(subjects, subject_name, root=root, subject_type=subject_type, settings_name=settings_name)
    if settings.login:
        check_login(settings.login)
    return bind_settings(settings, root=root, receives=receives)


def bind_settings(settings: SubjectSettings, *, root: Path, receives: bool = True) -> Subject:
    """Return the subject that settings describe; if they say so, traces complete its answers.

    Without `receives`, no traces are received: what their receiver needs is not checked.
    """
    subject = bind(settings, root=root, sign_in=sign_in)
    if receives and receives_traces(settings):
        from evalmeta.org.serving.trace_receiver import with_traces

        return with_traces(subject, port=trace_port(settings), seconds=limits.TRACE_SECONDS)
    declared = declared_settings(settings)
    if declared.reads_traces and declared.tracing == "in process":
        from evalmeta.engine.process_traces import with_process_traces

        return with_process_traces(subject)
    return subject


def receives_traces(settings: SubjectSettings) -> bool:
    """Return whether evalmeta receives the traces of an agent, which runs in another process."""
    declared = declared_settings(settings)
    return declared.reads_traces and declared.tracing == "received"


def trace_port(settings: SubjectSettings) -> int:
    """Return the port for traces, 0 for any; raise SettingsError if an agent that runs already needs to know it."""
    port = getattr(settings, "trace_port", None)
    if port == 0:
        raise SettingsError(
            "traces = true needs a fixed port, to which the agent sends its traces",
            actions=["Add a line like trace_port = 4318 to the subject in evalmeta.toml."],
        )
    return port or 0


def agent_settings(subjects: Mapping[str, SubjectSettings], name: str, *, root: Path) -> SubjectSettings | None:
    """Return the settings of an agent: those that bind its name, or else those of its source in the project."""
    if settings := find_subject(subjects, name):
        return settings
    if not name.isidentifier():
        return None
    found = (cast("SourceSettings", settings_of)(root, name) for settings_of in load_all("project_agents").values())
    return next(filter(None, found), None)


def is_bound(subjects: Mapping[str, SubjectSettings], name: str, *, root: Path) -> bool:
    """Return whether `bind_subject` finds an adapter for a name."""
    return agent_settings(subjects, name, root=root) is not None or _PYTHON_TARGET.fullmatch(name) is not None


def unbound_subject(
    subjects: Iterable[str],
    name: str,
    *,
    root: Path,
    subject_type: str = "AGENT",
    settings_name: str = SETTINGS_FILE,
    is_definition: bool = True,
) -> SubjectNotBound:
    """Return the error for a name without an adapter, with the nearest of the bound names and the lines to add.

    In a Salesforce DX project, the agent can also be one of the org, which can run definitions itself.
    """
    table = f"[{key_name(['subjects', name])}]"
    lines = f'{table}\nadapter = "python"\ntarget = "my_agent:answer"'
    is_dx = settings_name == SETTINGS_FILE and (root / PROJECT_FILE).is_file()
    if is_dx and subject_type != "PROMPT":
        lines = f"{lines}\n\nOr, for the agent in your Salesforce org:\n\n{table}\n{_AGENTFORCE_LINES}"
    near = get_close_matches(name, subjects, n=1)
    kind = "prompt template" if subject_type == "PROMPT" else "agent"
    actions = [f"Did you mean {near[0]!r} instead of {name!r}?"] if near else []
    if is_dx and (ignored := _ignored(root, name)):
        actions.append(ignored)
    if is_dx and is_definition:
        actions.append(_IN_ORG)
    return SubjectNotBound(
        f"no adapter is bound to the {kind} {name!r}",
        actions=[*actions, f"{_place_of_lines(root, settings_name)}, with your agent's module and name:\n\n{lines}"],
    )


def _ignored(root: Path, name: str) -> str:
    """Return that `.forceignore` ignores the script of an agent; empty if it does not, or if that is not known."""
    with suppress(EvalmetaError):
        return ignored_script(find_project(root, with_settings=False), name)
    return ""


def _place_of_lines(root: Path | None, settings_name: str) -> str:
    """Return where lines of settings belong: in the file of a project's folder, or in a new one."""
    if root is not None and not (root / SETTINGS_FILE).exists():
        return f"Create {settings_name} with these lines"
    return f"Add these lines to {settings_name}"


def rater_settings(
    raters: Mapping[str, RaterSettings], name: str, *, root: Path | None = None, settings_name: str = SETTINGS_FILE
) -> RaterSettings:
    """Return the settings of a rater (`rules` needs none); raise SettingsError if it is not configured."""
    if name in raters:
        return raters[name]
    if name == OFFLINE_RATER:
        return RulesRater(adapter="rules")
    near = get_close_matches(name, (*raters, OFFLINE_RATER), n=1)
    actions = [f"Did you mean {near[0]!r} instead of {name!r}?"] if near else []
    lines = f"[{key_name(['raters', name])}]\n{RATER_LINES}"
    raise SettingsError(
        f"the rater {name!r} is not configured",
        actions=[*actions, f"{_place_of_lines(root, settings_name)}, with your model and key:\n\n{lines}"],
    )


def rater_settings_of(org: Organization, options: RunOptions) -> RaterSettings:
    """Return the settings of the rater that a run uses; raise like `rater_settings`."""
    return rater_settings(org.settings().raters, options.scoring.rater, root=org.root, settings_name=org.settings_name)


def check_login(org: str) -> None:
    """Check without a request that the user has a login with an alias or username; raise SettingsError."""
    try:
        user_logins().find(org)
    except NotFound as error:
        actions = (*error.actions, f"Or correct the subject's org in {SETTINGS_FILE}.")
        raise SettingsError(f"the subject's org cannot be used: {error}", actions=actions) from None


async def sign_in(org: str, *, instead_of: str = "") -> SignedIn:
    """Return the session of the user's login with an alias or username; renew it if its token is `instead_of`.

    Raise NotFound, LoginFailed if it has no usable session, or UsageError if others can read the stored logins.
    """
    from evalmeta.client.auth import renew_secrets

    logins = user_logins()
    login = logins.find(org)
    secrets = logins.secrets_of(login)
    if instead_of and secrets.access_token == instead_of:
        secrets = await renew_secrets(login, logins, instead_of=instead_of)
    return SignedIn(login.url, secrets.access_token)


def live_settings(root: Path) -> Callable[[], Settings]:
    """Return what reads the settings of a served project, again when `evalmeta.toml` has changed."""
    file = root / SETTINGS_FILE
    current: tuple[tuple[int, int, int] | None, Settings] = (None, Settings())

    def read() -> Settings:
        nonlocal current
        version = None
        with suppress(FileNotFoundError):
            state = file.stat()
            version = state.st_mtime_ns, state.st_size, state.st_ino
        if version != current[0]:
            current = version, Settings() if version is None else _load(file)
        return current[1]

    return read


def _load(file: Path) -> Settings:
    try:
        return load_settings(file)
    except SettingsError as error:
        # Whoever starts a run has an evalmeta.toml of their own.
        what = f"the settings of the project that serves the org are not valid: {error}"
        raise SettingsError(what, actions=error.actions) from None


_PIECE: Final = 1 << 20


def setup_of(
    subjects: Mapping[str, SubjectSettings], subject_name: str, rater: RaterSettings | None, *, root: Path
) -> Setup:
    """Return what answers and judges in a run of a project: an agent by its name, and a rater by its settings."""
    agent, version = agent_of(subjects, subject_name, root=root)
    judge, prompt = ("", "") if rater is None else rater_of(rater, root=root)
    return Setup(agent, version, judge, prompt, __version__)


def agent_of(subjects: Mapping[str, SubjectSettings], name: str, *, root: Path) -> tuple[str, str]:
    """Return what identifies an agent, by default a function of that name, and a fingerprint of its source."""
    return described_agent(
        agent_settings(subjects, name, root=root) or PythonSubject.model_construct(adapter="python", target=name), root
    )


def described_agent(settings: SubjectSettings, root: Path) -> tuple[str, str]:
    """Return what `agent_of` returns, for an agent's settings."""
    text, files = settings.identity(root)
    checksums = [checksum for file in files if (checksum := _checksum(file)) is not None]
    return hide_secrets(text), fingerprint(*checksums) if checksums else ""


def rater_of(settings: RaterSettings, *, root: Path) -> tuple[str, str]:
    """Return what identifies a rater, and a fingerprint of its models' prompts, which is empty if it has none."""
    match settings:
        case RulesRater(embed=embed):
            return f"rules with {embed}" if embed else "rules", ""
        case LlmRater():
            from evalmeta.engine.raters.llm.prompts import PROMPT_VERSION, bind_rubric

            digest = bind_rubric(settings, root=root).digest
            return _models(settings), f"v{PROMPT_VERSION}, rubric {digest}" if digest else f"v{PROMPT_VERSION}"
        case _:
            return settings.adapter, ""


def _models(settings: LlmRater) -> str:
    parts = [f"llm {'+'.join(settings.model_names)}", f"at {address_in_words(settings.url)}" if settings.url else ""]
    samples = settings.sample_count
    parts += [f"with {samples} samples" if samples > 1 else ""]
    parts += ["" if settings.temperature == 0 else f"at temperature {settings.temperature}"]
    return " ".join(filter(None, parts))


def _checksum(file: Path) -> int | None:
    """Return a checksum of a file; None if it does not exist."""
    checksum = 0
    try:
        with file.open("rb") as source:
            while data := source.read(_PIECE):
                checksum = zlib.crc32(data, checksum)
    except (OSError, ValueError):
        return None
    return checksum


AGENT_PREFIX: Final = "0Xx"
VERSION_PREFIX: Final = "0X9"
_ID_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_DIGITS_COUNT: Final = 12
_AGENT: Final = "AGENT"


class Agent(NamedTuple):
    """An agent with its one version; `state` is None if nobody has activated or deactivated it."""

    name: str
    is_bound: bool
    state: AgentState | None

    @property
    def is_active(self) -> bool:
        """Return whether the agent can be asked."""
        return self.is_bound and (self.state is None or self.state.is_active)

    @property
    def id(self) -> str:
        """Return its record id."""
        return _record_id(AGENT_PREFIX, self.name)

    @property
    def version_id(self) -> str:
        """Return the record id of its version."""
        return _record_id(VERSION_PREFIX, self.name)


def agents_of(org: Organization) -> list[Agent]:
    """Return the agents that are bound or that a definition names, by name."""
    subjects = org.settings().subjects
    named = set(_named_subjects(org))
    prompts = {name for name, kind in named if kind != _AGENT} - {name for name, kind in named if kind == _AGENT}
    names = {name.casefold(): name for name, kind in sorted(named) if kind == _AGENT}
    names |= {name.casefold(): name for name in subjects if name not in prompts}
    states = Agents(org.database).states()
    return [
        Agent(name, is_bound(subjects, name, root=org.root), states.get(key)) for key, name in sorted(names.items())
    ]


def _named_subjects(org: Organization) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of the subject of each deployed definition."""
    sql = "SELECT full_name, content FROM component WHERE type = ?"
    for kind in TEST_TYPES:
        for name, content in org.database.rows(sql, (kind.name,)):
            yield subject_of(read_xml(content, label=name))


def _record_id(prefix: str, name: str) -> str:
    """Return the record id of a name: it stays the same when other agents come and go."""
    number = int.from_bytes(hashlib.sha256(name.casefold().encode()).digest())
    digits = []
    for _ in range(_ID_DIGITS_COUNT):
        number, digit = divmod(number, len(_ID_DIGITS))
        digits.append(_ID_DIGITS[digit])
    return with_checksum(prefix + "".join(digits))
