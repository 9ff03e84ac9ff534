"""The agent of a new project: the one that the user names, one in the folder, or a sample."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta import limits
from evalmeta.api.endpoints import chat_settings, check_key_variable, check_url, is_url, named_adapter, named_settings
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.errors import UsageError
from evalmeta.model.entry_points import is_target, likely_target
from evalmeta.model.settings import Settings
from evalmeta.package.agent_files import RULES
from evalmeta.package.files import shown
from evalmeta.package.folders import files_below

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.engine.interfaces import DescribedSubject, Description
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.settings import SubjectSettings

_SAMPLE: Final = "sample_agent:answer"
_NAME: Final = "my_agent"
_ADK_FILE: Final = "agent.py"
_ROOT_AGENT: Final = re.compile(r"^(root_agent\b|(async )?def get_agent_async\b)", re.MULTILINE)
_DEPTH: Final = 4
_JSON_NOTE: Final = (
    "In evalmeta.toml, request is what is sent to the endpoint, and answer is the path of the answer in its reply"
)
_DOUBLES: Final = "agent_doubles"
_DOUBLE: Final = """

def {name}(utterance, *, history, context):
    raise NotImplementedError("{name} is not connected: call it in agent_doubles.py")
"""
_FIRST_RULES: Final = """\
# What a language model would choose, for tests that always go the same way (docs/agent-script.md).
# Add rules before the last one: which entry of reasoning.actions is called, and in which subagent.
# - {subagent: SUBAGENT, utterance: "*word*", call: ENTRY, with: {INPUT: VALUE}}
rules:
- answer: No rule says what the agent does.
"""
_ANSWER: Final = re.compile(r"^(?:async )?def answer\(", re.MULTILINE)
_DEFINES: Final = re.compile(r"^(?:async def|def|class) ", re.MULTILINE)
# Python files that have no agent.
_OTHERS: Final = re.compile(r"test_.*|.*_test|conftest|setup|noxfile")


class AgentChoice(NamedTuple):
    """The agent that a user chooses for a new project: at most one of `target`, `url` and `command`.

    The target is `module:function` of a Python agent, the URL that of an endpoint, whose model and variable with the
    key can be chosen too, and the command is a program that reads and writes JSON lines. `is_sample` writes a sample
    agent although the folder has one, as the module of `target` if it is set.
    """

    target: str = ""
    url: str = ""
    model: str = ""
    api_key_env: str = ""
    command: str = ""
    is_sample: bool = False

    @property
    def is_for_scripts(self) -> bool:
        """Return whether `model` is the URL of a model that chooses the steps of agents in Agent Script."""
        return is_url(self.model) and not self.url


class NewAgent(NamedTuple):
    """An agent under test as a new project has it: its name, its table in `evalmeta.toml`, and a remark for the user.

    If its module is written, `template` and `values` are its content, and `path` is its place in the project's folder.
    The answers of the sample agent are known. `inputs` are those of its first tests, if it cannot answer any question.
    `files` are other files by their paths in the project's folder, with their content.
    """

    name: str
    settings: str
    template: str = ""
    path: str = ""
    values: tuple[tuple[str, str], ...] = ()
    is_sample: bool = False
    note: str = ""
    inputs: tuple[JsonObject, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


def new_agent(root: Path, choice: AgentChoice) -> NewAgent:
    """Return the agent of a new project in a folder, without writing anything."""
    if choice.url:
        return _endpoint(choice, root)
    if choice.command and (adapter := adapter_of_command(choice.command)):
        words = _split(choice.command.removeprefix(f"{adapter}:"))
        return _described(_table(adapter=adapter, command=words), {"adapter": adapter, "command": tuple(words)}, root)
    if choice.command:
        return NewAgent("my_agent", _table(adapter="command", command=_split(choice.command)))
    if choice.target:
        return _python_agent(root, choice)
    if choice.is_sample:
        return _sample(_SAMPLE)
    return _found_agent(root)


def _found_agent(root: Path) -> NewAgent:
    """Return the agent in a folder, or a sample if none is recognised."""
    if module := _adk_module(root):
        note = f"{module.replace('.', '/')}/agent.py has an agent of google-adk, which google-adk's Runner asks"
        return NewAgent(_name_of(module.split(".")[-1]), _table(adapter="adk", target=module), note=note)
    modules = _modules(root)
    if module := next((name for name, text in modules.items() if _ANSWER.search(text)), ""):
        return _own_agent(f"{module}:answer", note=f"The tests ask {module}:answer; to test another agent, use --agent")
    note = f"The tests ask a sample agent; if {shown(root)} has yours, name it with --agent" if modules else ""
    return _sample(_SAMPLE)._replace(note=note)


def real_agents(names: Sequence[str], scripts: Collection[str]) -> NewAgent:
    """Return the agents of a Salesforce project: those in Agent Script, and doubles of the others.

    Rules choose the steps of a script, and end its tests in a failure until they are written. Doubles end every test in
    the error that they are not connected. The first name is that of the new agent.
    """
    doubles = [name for name in names if name not in scripts]
    settings = {name: _table(adapter="python", target=f"{_DOUBLES}:{name}") for name in doubles}
    settings |= {name: _table(adapter="agent_script", bundle=name) for name in names if name in scripts}
    first, *others = names
    tables = [settings[first], *(f"[subjects.{name}]\n{settings[name]}" for name in others)]
    written = tuple((f"{RULES}/{name}.yaml", _FIRST_RULES) for name in names if name in scripts)
    notes = []
    if written:
        files = ", ".join(path for path, _ in written)
        notes.append(f"{files}: write rules that choose the agent's steps, or let a model choose: --model URL")
    if doubles:
        notes.append(
            f"{_DOUBLES}.py stands in for {', '.join(doubles)}: edit it to call them, or run the tests in an org"
        )
    agent = NewAgent(first, "\n".join(tables), note="; ".join(notes), files=written)
    if not doubles:
        return agent
    functions = "".join(_DOUBLE.format(name=name) for name in doubles)
    values = (("functions", functions.rstrip("\n")),)
    return agent._replace(template="agent_doubles", path=f"{_DOUBLES}.py", values=values)


def script_agents(names: Sequence[str], choice: AgentChoice) -> NewAgent:
    """Return a project's agents in Agent Script, whose steps the model at the URL `choice.model` chooses.

    The first name is that of the new agent. Raise UsageError if there are none.
    """
    if not names:
        raise UsageError(
            f"--model {choice.model} is for agents in Agent Script, and the project has none",
            actions=[f"For the model as an agent of its own, use --url {choice.model}"],
        )
    check_url(choice.model, option="--model")
    keys = chat_settings(choice.model, model="", api_key_env=choice.api_key_env)
    if not keys:
        raise UsageError(f"--model {choice.model} is not an endpoint for chat completions, which ends in /v1")
    first, *others = [(name, _table(adapter="agent_script", bundle=name, **keys)) for name in names]
    tables = [first[1], *(f"[subjects.{name}]\n{table}" for name, table in others)]
    note = f"The model is {keys['model']!r}; to ask another one, correct model in evalmeta.toml"
    return NewAgent(first[0], "\n".join(tables), note=note)


def check_choice(choice: AgentChoice) -> None:
    """Check that the options fit together; raise UsageError if they do not."""
    named = [f"--{option}" for option, value in (("agent", choice.target), ("url", choice.url)) if value]
    named += ["--command"] if choice.command else []
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} name different agents", actions=["Keep one of them."])
    if choice.is_sample and (choice.url or choice.command):
        raise UsageError("--sample writes a Python agent", actions=["Leave out --sample, or --url and --command."])
    for option, value in (("--model", choice.model), ("--api-key-env", choice.api_key_env)):
        if value and not choice.url and not choice.is_for_scripts:
            raise UsageError(f"{option} needs --url: only endpoints have one")
    if choice.api_key_env:
        check_key_variable(choice.api_key_env)


def _python_agent(root: Path, choice: AgentChoice) -> NewAgent:
    target = choice.target
    if not is_target(target):
        raise UsageError(
            f"{target!r} is not a valid module:function of a Python agent",
            actions=[f"Write --agent {likely_target(target)}"],
        )
    module = target.partition(":")[0]
    if not _exists(root, module) and "." not in target.partition(":")[2]:
        if not choice.is_sample and (modules := _modules(root)):
            near = get_close_matches(module, modules, n=1)
            actions = [f"Did you mean --agent {near[0]}:{target.partition(':')[2]}?"] if near else []
            way_out = f"To write a sample agent there, add --sample: evalmeta init --agent {target} --sample"
            raise UsageError(f"the module of the agent {target!r} cannot be found", actions=[*actions, way_out])
        return _sample(target)
    if choice.is_sample:
        raise UsageError(f"the module {module} exists", actions=["Leave out --sample, or name another module."])
    # What the agent prints while it is imported must not mix with the output.
    with redirect_stdout(sys.stderr):
        PythonSubject(adapter="python", target=target).bind(root=root)
    return _own_agent(target)


def _own_agent(target: str, *, note: str = "") -> NewAgent:
    module = target.partition(":")[0].rpartition(".")[2]
    return NewAgent(_name_of(module), _table(adapter="python", target=target), note=note)


def _modules(root: Path) -> dict[str, str]:
    """Return the project's Python modules that define something, and so may have an agent, with their texts."""
    by_depth = sorted(_shallow(root), key=lambda path: (len(path.parts), path))
    files = (path for path in by_depth if path.suffix == ".py" and not _OTHERS.fullmatch(path.stem))
    texts = {".".join(file.relative_to(root).with_suffix("").parts): _read(file) for file in files}
    return {name: text for name, text in texts.items() if _DEFINES.search(text)}


def _sample(target: str) -> NewAgent:
    module, _, function = target.partition(":")
    path = f"{module.replace('.', '/')}.py"
    settings = _table(adapter="python", target=target)
    values = (("function", function),)
    return NewAgent(_name_of(module.rpartition(".")[2]), settings, "sample_agent", path, values, is_sample=True)


def _exists(root: Path, module: str) -> bool:
    """Return whether a module is in the project's folder, or is installed."""
    base = root.joinpath(*module.split("."))
    if base.with_suffix(".py").is_file() or (base / "__init__.py").is_file():
        return True
    top = module.partition(".")[0]
    # importlib.util.find_spec would also find what another project has imported.
    return not (root / top).is_dir() and any(finder.find_spec(top, None) for finder in sys.meta_path)


def adapter_of_command(text: str) -> str:
    """Return the adapter in `ADAPTER:COMMAND`; empty for other texts, such as the target of a Python agent."""
    return "" if is_target(text) or is_url(text) else named_adapter(text, "command")


def _described(table: str, settings: Mapping[str, object], root: Path) -> NewAgent:
    """Return an agent, which is asked what it offers if it cannot answer any question."""
    bound = Settings.model_validate({"subjects": {_NAME: settings}}).subjects[_NAME]
    if not bound.is_described:
        return NewAgent(_NAME, table)
    offer = ask_offer(bound, root)
    note = f"{offer.text[:1].upper()}{offer.text[1:]}; the tests call them, with the effects that this has"
    return NewAgent(_NAME, table, note=note, inputs=offer.inputs)


def ask_offer(settings: SubjectSettings, root: Path) -> Description:
    """Return what a described agent offers; raise SubjectError or UsageError if it does not say that in time."""
    return run_to_end(_offer_of(cast("DescribedSubject", bind(settings, root=root))))


async def _offer_of(subject: DescribedSubject) -> Description:
    try:
        async with asyncio.timeout(limits.DOCTOR_SECONDS):
            return await subject.describe()
    except TimeoutError:
        raise UsageError(f"the agent did not say within {limits.DOCTOR_SECONDS:g} s what it can be asked") from None


def _endpoint(choice: AgentChoice, root: Path) -> NewAgent:
    if settings := named_settings(choice.url, api_key_env=choice.api_key_env, option="--agent"):
        if choice.model:
            raise UsageError(f"--model is for URLs of endpoints, not for the adapter {settings['adapter']}")
        return _described(_table(**settings), settings, root)
    check_url(choice.url, option="--url")
    keys = chat_settings(choice.url, model=choice.model, api_key_env=choice.api_key_env)
    if not keys:
        table = _table(adapter="http", url=choice.url, answer="$.answer")
        headers = f'\n[subjects.my_agent.headers]\nAuthorization = "Bearer ${{{choice.api_key_env}}}"\n'
        request = '\n[subjects.my_agent.request]\nutterance = "{{utterance}}"\n'
        return NewAgent("my_agent", f"{table}{headers if choice.api_key_env else ''}{request}", note=_JSON_NOTE)
    note = "" if choice.model else f"The model is {keys['model']!r}; to ask another one, correct model in evalmeta.toml"
    return NewAgent("my_agent", _table(adapter="openai", **keys), note=note)


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command {command!r} cannot be read: {error}", actions=["Close the quotation."]) from None
    if not words:
        raise UsageError("--command is empty", actions=['Name the program: --command "python bot.py"'])
    return words


def _adk_module(root: Path) -> str:
    """Return the package of an ADK agent in the folder, empty if there is none: one with an agent in `agent.py`."""
    for path in sorted(_shallow(root)):
        *folders, name = path.relative_to(root).parts
        if name == _ADK_FILE and folders and all(map(str.isidentifier, folders)) and _ROOT_AGENT.search(_read(path)):
            return ".".join(folders)
    return ""


def _shallow(root: Path) -> Iterable[Path]:
    return (
        path for path in (files_below(root) if root.is_dir() else ()) if len(path.relative_to(root).parts) <= _DEPTH
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _name_of(text: str) -> str:
    """Return a name that is also a valid API name."""
    name = re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_")
    return name if name[:1].isalpha() else f"agent_{name}".strip("_")


def _table(**keys: str | list[str]) -> str:
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in keys.items())
