"""What scripts tell MLflow's tracking server: names and parameters become metadata of runs, the rest is a warning.

evalmeta has no tracking server. Its own journal and history keep the results of evaluations.
"""

from __future__ import annotations

import importlib
import time
import uuid
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, cast

from evalmeta import limits
from evalmeta.model.redaction import hide_secrets
from evalmeta.model.user_warnings import warn_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.engine.project_code import Function
    from evalmeta.model.json_value import JsonObject

_DEFAULT: Final = "mlflow"
# Metadata of traces: the run of evalmeta, and as in MLflow the run of the script.
_RUN_ID: Final = "evalmeta.run"
_SOURCE_RUN: Final = "mlflow.sourceRun"
# Longer texts and more of them could exceed what cases may have as metadata.
_SHOWN_CHARS: Final = 100
_MOST_NOTED: Final = limits.MAX_METADATA_VALUES // 2


@dataclass(slots=True)
class Experiment:
    """An experiment: the name of the evaluations that follow."""

    name: str
    experiment_id: str = "0"


@dataclass(slots=True)
class RunInfo:
    """What is known of a run."""

    run_id: str
    run_name: str
    experiment_id: str = "0"
    start_time: int = field(default_factory=lambda: int(time.time() * 1000))


@dataclass(slots=True)
class RunData:
    """What a script logged in a run."""

    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ActiveRun:
    """A run of a script, whose parameters and tags are metadata of the cases that are evaluated in it."""

    info: RunInfo
    data: RunData = field(default_factory=RunData)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_run()


_experiment: Final[ContextVar[Experiment | None]] = ContextVar("mlflow_experiment", default=None)
_runs: Final[ContextVar[tuple[ActiveRun, ...]]] = ContextVar("mlflow_runs", default=())
_model: Final[ContextVar[str | None]] = ContextVar("mlflow_model", default=None)
_noticed: Final[set[str]] = set()


def notice(what: str, instead: str) -> None:
    """Warn once in a process that something has no effect."""
    if what not in _noticed:
        _noticed.add(what)
        warn_user(f"{what} has no effect in evalmeta: {instead}")


def set_tracking_uri(uri: object) -> None:
    """Warn once that evalmeta has no tracking server."""
    notice("mlflow.set_tracking_uri", "results stay on this machine (docs/coming-from-mlflow.md)")


def get_tracking_uri() -> str:
    """Return an empty text: there is no tracking server."""
    return ""


def set_registry_uri(uri: object) -> None:
    """Warn once that evalmeta has no registry of models."""
    notice("mlflow.set_registry_uri", "it has no registry of models")


def login(*_: object, **__: object) -> None:
    """Warn once that evalmeta needs no login."""
    notice("mlflow.login", "it needs no workspace")


def set_experiment(experiment_name: str | None = None, experiment_id: str | None = None) -> Experiment:
    """Name the evaluations that follow."""
    made = Experiment(experiment_name or experiment_id or _DEFAULT, experiment_id or "0")
    _experiment.set(made)
    return made


def get_experiment_by_name(name: str) -> Experiment | None:
    """Return the experiment if it is the one that was set."""
    current = _experiment.get()
    return current if current and current.name == name else None


def set_active_model(*, name: str | None = None, model_id: str | None = None, **_: object) -> None:
    """Note the model, which is metadata of the cases that are evaluated."""
    _model.set(model_id or name)


def start_run(run_id: str | None = None, run_name: str | None = None, **others: object) -> ActiveRun:
    """Begin a run, which ends with its `with` block or with `end_run`."""
    info = RunInfo(run_id or uuid.uuid4().hex, run_name or "")
    run = ActiveRun(info)
    if isinstance(tags := others.get("tags"), dict):
        run.data.tags.update({str(key): str(value) for key, value in tags.items()})
    _runs.set((*_runs.get(), run))
    return run


def active_run() -> ActiveRun | None:
    """Return the run that was begun last and has not ended."""
    runs = _runs.get()
    return runs[-1] if runs else None


def end_run(status: str = "FINISHED") -> None:
    """End the run that was begun last."""
    _runs.set(_runs.get()[:-1])


def _current() -> RunData:
    return (active_run() or start_run()).data


def log_param(key: str, value: object) -> object:
    """Note a parameter, which is metadata of the cases that are evaluated in the run."""
    _current().params[key] = str(value)
    return value


def log_params(params: Mapping[str, object]) -> None:
    """Note parameters."""
    for key, value in params.items():
        log_param(key, value)


def set_tag(key: str, value: object) -> None:
    """Note a tag, which is metadata of the cases that are evaluated in the run."""
    _current().tags[key] = str(value)


def set_tags(tags: Mapping[str, object]) -> None:
    """Note tags."""
    for key, value in tags.items():
        set_tag(key, value)


def log_metric(key: str, value: float, **_: object) -> None:
    """Keep a metric in the run of the script, where nothing else reads it."""
    _current().metrics[key] = float(value)
    notice("mlflow.log_metric", "the number stays in mlflow.active_run().data.metrics; reports have only their own")


def log_metrics(metrics: Mapping[str, float], **_: object) -> None:
    """Keep metrics in the run of the script."""
    for key, value in metrics.items():
        log_metric(key, value)


def log_artifact(*_: object, **__: object) -> None:
    """Warn once that evalmeta keeps no artifacts."""
    notice("logging artifacts", "it has no store for them")


log_artifacts = log_dict = log_text = log_table = log_figure = log_input = log_artifact


def autolog(*words: object, **named: object) -> None:
    """Let an installed MLflow record the calls of all libraries; warn once if there is none."""
    _autolog("mlflow", words, named)


def _autolog(module: str, words: Sequence[object], named: Mapping[str, object]) -> None:
    try:
        original = cast("Function", importlib.import_module(module).autolog)
    except (ImportError, AttributeError):
        instead = "it needs MLflow. Functions with @mlflow.trace are recorded; docs/traces.md reads traces of libraries"
        notice("mlflow.autolog", instead)
    else:
        original(*words, **named)


class Flavor:
    """A module of MLflow for one library, of which scripts call `autolog`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def autolog(self, *words: object, **named: object) -> None:
        """Let an installed MLflow record the calls of the library; warn once if there is none."""
        _autolog(f"mlflow.{self.name}", words, named)


FLAVORS: Final = frozenset(
    (
        *("openai", "langchain", "langgraph", "llama_index", "anthropic", "gemini", "dspy", "crewai", "autogen"),
        *("pydantic_ai", "smolagents", "strands", "bedrock", "mistral", "groq", "litellm", "ollama", "semantic_kernel"),
        *("agno", "haystack", "ag2"),
    )
)


@contextmanager
def new_notices() -> Iterator[None]:
    """Let every notice be given again, as in a new process."""
    kept = {*_noticed}
    _noticed.clear()
    try:
        yield
    finally:
        _noticed.update(kept)


def run_name() -> str:
    """Return the name of an evaluation: that of the experiment."""
    current = _experiment.get()
    return current.name.rpartition("/")[2] or _DEFAULT if current else _DEFAULT


def noted_metadata(model_id: str | None) -> JsonObject:
    """Return what a script said of its run, as metadata of the cases."""
    run, model = active_run(), model_id or _model.get()
    noted: dict[str, str] = {"model_id": model} if model else {}
    if run is not None:
        noted |= {"run_name": run.info.run_name} if run.info.run_name else {}
        noted |= {f"param.{key}": value for key, value in run.data.params.items()}
        noted |= {f"tag.{key}": value for key, value in run.data.tags.items()}
    return {key: _shown(key, text) for key, text in list(noted.items())[:_MOST_NOTED]}


def noted_run(run_id: str, metrics: Mapping[str, float]) -> dict[str, str]:
    """Keep the metrics of an evaluation in the script's run, and return the ids of both as metadata of traces."""
    run = active_run()
    if run is not None:
        run.data.metrics.update(metrics)
    return {_RUN_ID: run_id, _SOURCE_RUN: run_id if run is None else run.info.run_id}


def is_of_run(metadata: Mapping[str, str], run_id: str) -> bool:
    """Return whether the metadata of a trace names a run: that of the script, or that of evalmeta."""
    return run_id in {metadata.get(_RUN_ID), metadata.get(_SOURCE_RUN)}


def _shown(key: str, text: str) -> str:
    # The name of a parameter may say that its value is a secret.
    return hide_secrets(f"{key}={text}").removeprefix(f"{key}=")[:_SHOWN_CHARS]
