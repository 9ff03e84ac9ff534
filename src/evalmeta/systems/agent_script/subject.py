"""The adapter agent_script: an agent in Agent Script whose bundle is in the project, carried out without an org."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field
from pydantic import JsonValue as AnyJson

from evalmeta import limits
from evalmeta.errors import SettingsError
from evalmeta.model.redaction import address_in_words
from evalmeta.model.settings import TARGET, SubjectSettings
from evalmeta.package.files import project_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from evalmeta.agent_script.nodes import ActionDefinition, Script
    from evalmeta.engine.interfaces import Subject
    from evalmeta.engine.project_code import Function
    from evalmeta.engine.subjects.calls import Calls
    from evalmeta.engine.subjects.replay import Recordings
    from evalmeta.model.login import SignIn
    from evalmeta.systems.agent_script.doubles import Double
    from evalmeta.systems.agent_script.models import Model

BUNDLE_NAME: Final = r"^[A-Za-z]\w*$"


class AgentScriptSubject(SubjectSettings):
    """An agent in Agent Script, executed without an org: `bundle` is its name, as in `aiAuthoringBundles/NAME`.

    Its steps are chosen by one of these: the language model `model`, at the endpoint `url` for chat completions, with
    the key in `api_key_env`, `headers` and what `extra` adds to requests; the function `target`; the file `rules`, by
    default `rules/NAME.yaml`; the run in `recording`. Files in the folder `actions`, functions of the module
    `functions`, or the calls in `recording` answer its actions. Each turn begins at the subagent that answered last;
    with `turns_begin = "start_agent"`, it begins at `start_agent`.
    """

    agent = "an agent in Agent Script, whose bundle is in the project"
    imports_code = True

    adapter: Literal["agent_script"]
    bundle: Annotated[str, Field(pattern=BUNDLE_NAME)]
    model: str = ""
    url: str = "https://api.openai.com/v1"
    api_key_env: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    extra: dict[str, AnyJson] = Field(default_factory=dict)
    target: Annotated[str, Field(pattern=f"^$|{TARGET}")] = ""
    rules: Path | None = None
    recording: Path | None = None
    actions: Path = Path("actions")
    functions: str = ""
    turns_begin: Literal["active", "start_agent"] = "active"

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject that carries out the script; raise SettingsError if it, or what it needs, cannot be used."""
        label, script = self._script(root)
        return self.bind_script(script, label, root=root)

    def bind_script(self, script: Script, label: str, *, root: Path) -> Subject:
        """Return a subject that carries out a script of any origin as these settings say; raise like `bind`."""
        from evalmeta.engine.interfaces import SimpleSubject
        from evalmeta.engine.subjects.calls import Calls
        from evalmeta.engine.subjects.replay import read_recordings
        from evalmeta.systems.agent_script.conversation import Agent, Conversation
        from evalmeta.systems.agent_script.doubles import Doubles
        from evalmeta.systems.agent_script.proposed_doubles import example_outputs, needs_review
        from evalmeta.systems.agent_script.tools import actions_of

        if script.start is None:
            raise SettingsError(f"{label} has no start_agent", actions=["Add a block `start_agent NAME:`."])
        calls = Calls(root)
        recordings = read_recordings(root / self.recording) if self.recording else None
        model = self._model(script, recordings, calls, root)
        files = self._row_files(script, root)
        labels = {name: project_label(path, root) for name, path in files.items()}
        actions = actions_of(script)
        doubles = Doubles(
            self._doubles(script, files, recordings, calls),
            labels,
            self.bundle,
            examples=lambda name: (example_outputs(actions[name]), needs_review(actions[name])),
        )
        agent = Agent(*(script, script.start, label, doubles, model.name), restarts=self.turns_begin == "start_agent")

        async def close() -> None:
            await model.close()
            calls.close()

        return SimpleSubject(lambda case: Conversation(agent, model.open(case), case), close=close)

    @property
    def is_scripted(self) -> bool:
        """Return whether rules or a recording choose the steps."""
        return not (self.model or self.target)

    def proposed_doubles(self, root: Path) -> Mapping[Path, bytes]:
        """Return files with example outputs of the actions that nothing answers; raise as `bind` does."""
        from evalmeta.engine.subjects.calls import Calls
        from evalmeta.engine.subjects.replay import read_recordings
        from evalmeta.systems.agent_script.proposed_doubles import proposed_rows
        from evalmeta.systems.agent_script.tools import actions_of

        _, script = self._script(root)
        files = self._row_files(script, root)
        recordings = read_recordings(root / self.recording) if self.recording else None
        calls = Calls(root)
        try:
            doubles = self._doubles(script, files, recordings, calls)
        finally:
            calls.close()
        actions = actions_of(script)
        return {files[name]: proposed_rows(actions[name]) for name in actions if not doubles[name]}

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the agent and what chooses, and the files that say what it does."""
        script = script_of(root, self.bundle)
        deployed = None if script else _deployed_script(root, self.bundle)
        files = [path for path in (script, self._rules(root)) if path]
        folders = (root / self.actions, root / self.actions / self.bundle)
        actions = [path for folder in folders for path in sorted(folder.glob("*.yaml"))]
        named = self.bundle if deployed is None else f"{self.bundle} as deployed ({sha256(deployed).hexdigest()[:8]})"
        chooser = f"{self.model} at {address_in_words(self.url)}" if self.model else self.target
        return f"agent_script {named} {chooser}".rstrip(), [*files, *actions]

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables in headers, too."""
        from evalmeta.engine.subjects.http import header_variables

        return (*super().key_variables(), *header_variables(self.headers))

    def _script(self, root: Path) -> tuple[str, Script]:
        """Return the path of the script in messages, and the script; raise SettingsError if it cannot be used.

        The script is that of the project, or else the one that is deployed to its org.
        """
        path = script_of(root, self.bundle)
        if path is not None:
            from evalmeta.package.files import read_text

            label = project_label(path, root)
            text = read_text(path, raises=SettingsError, max_bytes=limits.MAX_SCRIPT_BYTES)
            return label, _checked_script(text, label, root)
        if (deployed := _deployed_script(root, self.bundle)) is not None:
            label = f"{self.bundle}.agent in the org"
            return label, _checked_script(deployed.decode("utf-8-sig"), label, root)
        raise SettingsError(
            f"neither the project nor its org has an Agent Script of {self.bundle!r}",
            actions=[f"Create aiAuthoringBundles/{self.bundle}/{self.bundle}.agent, or correct `bundle`."],
        )

    def _row_files(self, script: Script, root: Path) -> dict[str, Path]:
        """Return the file with the rows of each action by its name, also if it does not exist yet.

        A file in the folder with the agent's name comes before one that agents share. In a project with several agents,
        whose actions may have the same names, new files are the agent's own.
        """
        from evalmeta.systems.agent_script.tools import actions_of

        folder = root / self.actions
        has_others = len(_scripts_below(root)) > 1
        files: dict[str, Path] = {}
        for name in actions_of(script):
            own, shared = folder / self.bundle / f"{name}.yaml", folder / f"{name}.yaml"
            files[name] = own if own.is_file() or (has_others and not shared.is_file()) else shared
        return files

    def _rules(self, root: Path) -> Path | None:
        """Return the file of rules: the one that the settings name, or the agent's own if no model is named."""
        if self.rules is not None:
            return root / self.rules
        from evalmeta.package.agent_files import RULES

        usual = root / RULES / f"{self.bundle}.yaml"
        return usual if not (self.model or self.target or self.recording) and usual.is_file() else None

    def _model(self, script: Script, recordings: Recordings | None, calls: Calls, root: Path) -> Model:
        from evalmeta.systems.agent_script.models import FunctionModel
        from evalmeta.systems.agent_script.recorded import RecordedModel
        from evalmeta.systems.agent_script.rules import read_rules

        named = [name for name in ("model", "target", "rules") if getattr(self, name)]
        if len(named) > 1:
            raise SettingsError(
                f"the agent {self.bundle} has {' and '.join(named)}, which all choose its steps",
                actions=["Keep one of them in evalmeta.toml."],
            )
        if self.model:
            return self._chat_model()
        if self.target:
            return FunctionModel(calls.of(_function(root, self.target)), self.target)
        if rules := self._rules(root):
            return read_rules(rules, label=project_label(rules, root), script=script)
        if recordings is not None:
            return RecordedModel(recordings, str(self.recording))
        raise _no_model(self.bundle)

    def _chat_model(self) -> Model:
        from evalmeta.engine.http_endpoint import Endpoint
        from evalmeta.engine.subjects.http import fill_headers
        from evalmeta.systems.agent_script.chat import ChatModel

        headers, secrets, credential = fill_headers(self.headers, api_key_env=self.api_key_env)
        endpoint = Endpoint(self.url, headers=headers, secrets=secrets, credential=credential)
        return ChatModel(endpoint, self.model, url=self.url, extra=self.extra)

    def _doubles(
        self, script: Script, files: Mapping[str, Path], recordings: Recordings | None, calls: Calls
    ) -> Mapping[str, tuple[Double, ...]]:
        from evalmeta.engine.project_code import import_from
        from evalmeta.systems.agent_script.recorded import recorded_doubles
        from evalmeta.systems.agent_script.tools import actions_of

        recorded = recorded_doubles(recordings) if recordings else {}
        module = import_from(calls.root, self.functions, called="the subject's functions") if self.functions else None
        return {
            name: (
                *_rows_in(files[name], actions, calls.root),
                *_function_in(module, name, calls),
                *([recorded[name]] if name in recorded else []),
            )
            for name, actions in actions_of(script).items()
        }


def _rows_in(file: Path, actions: list[ActionDefinition], root: Path) -> Iterator[Double]:
    from evalmeta.systems.agent_script.doubles import read_rows

    if file.is_file():
        yield read_rows(file, actions, label=project_label(file, root))


def _function_in(module: ModuleType | None, name: str, calls: Calls) -> Iterator[Double]:
    from evalmeta.systems.agent_script.doubles import FunctionDouble

    if callable(function := getattr(module, name, None)):
        yield FunctionDouble(calls.of(function), name)


def bundle_settings(root: Path, name: str) -> SubjectSettings | None:
    """Return the settings of an agent whose Agent Script is in the project or deployed to its org; None without one."""
    if not name.isidentifier():
        return None
    if script_of(root, name) is None and _deployed_script(root, name) is None:
        return None
    return AgentScriptSubject(adapter="agent_script", bundle=name)


def script_of(root: Path, agent: str) -> Path | None:
    """Return the Agent Script of an agent of a project; None if it has none."""
    from evalmeta.package.agent_files import project_script

    return project_script(root, agent)


def _scripts_below(root: Path) -> set[str]:
    """Return the names of the agents in Agent Script of a project."""
    from evalmeta.package.agent_files import find_scripts, source_folders

    return {name for folder in source_folders(root) for name in find_scripts(folder)}


def _deployed_script(root: Path, bundle: str) -> bytes | None:
    from evalmeta.systems.agent_script.deployed import deployed_script

    return deployed_script(root, bundle)


def _checked_script(text: str, label: str, root: Path) -> Script:
    """Return a script; raise SettingsError with the first error that `evalmeta validate` reports about it."""
    from evalmeta.package.project import find_project
    from evalmeta.validation.rules import rule_policy
    from evalmeta.validation.script_rules import read_script

    script, found = read_script(text, label=label, severity_of=rule_policy(find_project(root).declared).severity)
    if problems := [problem for problem in found if problem.is_error]:
        raise SettingsError(f"{problems[0].location}: {problems[0].message}", problems=problems)
    return script


def _function(root: Path, target: str) -> Function:
    from evalmeta.engine.project_code import find_function
    from evalmeta.engine.subjects.calls import check_call

    try:
        function = find_function(target, root)
    except SettingsError as error:
        raise SettingsError(f"the target {target!r} cannot be used: {error}", actions=error.actions) from None
    check_call(function, ({},), {}, called=f"the target {target!r}", root=root, example="choose(request)")
    return function


def model_lines(bundle: str, table: str) -> str:
    """Return the lines of a table that lets a model choose the steps of an agent."""
    return (
        f'[subjects.{table}]\nadapter = "agent_script"\nbundle = "{bundle}"\nmodel = "gpt-4.1-mini"\n'
        'url = "https://api.openai.com/v1"\napi_key_env = "OPENAI_API_KEY"'
    )


def _no_model(bundle: str) -> SettingsError:
    from evalmeta.package.agent_files import RULES

    rules = "rules:\n  - answer: Hello!"
    return SettingsError(
        f"the agent {bundle} has no model and no rules, which choose its steps",
        actions=[
            "Let a model at a URL choose the steps of all agents: evalmeta init --model http://127.0.0.1:8000/v1",
            f"Or add these lines to evalmeta.toml, with your model and key:\n\n{model_lines(bundle, bundle)}",
            f"Or write rules instead of a model to {RULES}/{bundle}.yaml:\n\n{rules}",
        ],
    )
