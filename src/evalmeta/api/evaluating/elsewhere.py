"""Evaluations whose cases a cluster asks: its workers, and what makes the agent and the scorers there."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.evaluating.inputs import Bindings
from evalmeta.api.evaluating.loaded import LoadedEvaluation
from evalmeta.engine.redaction import with_redaction
from evalmeta.engine.runner import execute_elsewhere
from evalmeta.engine.scorers import make_scorers
from evalmeta.engine.subjects.objects import bound_for
from evalmeta.errors import UsageError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run_options import RunOptions, Scoring
from evalmeta.org.custom_scorers import scorers_of_project

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.engine.interfaces import Journal, Scorer, Subject
    from evalmeta.engine.remote.crew import Crew
    from evalmeta.engine.runner import OnResults
    from evalmeta.engine.scheduler import Places
    from evalmeta.engine.spending import Spending


@dataclass(frozen=True, slots=True)
class EvaluationRecipe:
    """The subject and the rater of `evaluate`, or the settings that stand for them."""

    subject: object
    rater: object
    subject_name: str
    redacted: Sequence[str]
    scoring: Scoring
    traces: bool

    def bind(self, root: Path) -> tuple[Subject, Mapping[str, Scorer]]:
        """Return the agent and the scorers; raise SettingsError if something is missing on this machine."""
        stack = AsyncExitStack()
        bindings = Bindings(stack, self.subject, self.rater, None, traces=self.traces)
        loaded = LoadedEvaluation(Evaluation("", self.subject_name, ()), None, EVALUATION_DEFINITION, root)
        # The check before the call knows the inputs.
        with bound_for(()):
            subject = with_redaction(bindings.subject(loaded), self.redacted)
        rater = bindings.rater(loaded, RunOptions(scoring=self.scoring))
        return _Owner(subject, stack), make_scorers(self.scoring, rater, find_custom=scorers_of_project(root))


class _Owner:
    """A subject that closes all that was made with it."""

    def __init__(self, subject: Subject, stack: AsyncExitStack) -> None:
        self.open = subject.open
        self.close = stack.aclose


class Elsewhere(NamedTuple):
    """The workers that ask the cases of an evaluation, and its pickled recipe."""

    crew: Crew
    recipe: bytes

    async def execute(
        self,
        evaluation: Evaluation,
        journal: Journal,
        *,
        options: RunOptions,
        on_results: OnResults,
        places: Places,
        spending: Spending,
    ) -> None:
        """Run the cases; raise ClusterError if the workers cannot."""
        async with self.crew.run(self.recipe, options, places.pacer) as there:
            await execute_elsewhere(
                *(evaluation, there.ask, journal),
                options=options,
                on_results=on_results,
                places=places,
                spending=spending,
            )


@asynccontextmanager
async def open_crew(on: str, evaluations: Sequence[LoadedEvaluation], *, concurrency: int) -> AsyncIterator[Crew]:
    """Start the workers of a call in a cluster; raise UsageError or ClusterError if there is none."""
    from evalmeta.engine.remote.ray_cluster import check_address, ray_crew

    check_address(on)
    roots = {loaded.root for loaded in evaluations}
    if len(roots) > 1:
        raise UsageError(
            "a cluster gets the code of one folder, and these evaluations have several",
            actions=["Evaluate them one by one, or name their folder: root=..."],
        )
    async with ray_crew(on, roots.pop(), concurrency=concurrency) as crew:
        yield crew


def recipe_of(loaded: LoadedEvaluation, options: RunOptions, *, subject: object, rater: object, traces: bool) -> bytes:
    """Return the recipe of an evaluation; raise UsageError if the agent or the rater cannot leave this process."""
    from ray import cloudpickle

    from evalmeta.api.evaluating import project

    has_settings = loaded.project is not None and loaded.project.declared is not None
    recipe = EvaluationRecipe(
        project.subject_settings_of(loaded) if subject is None else subject,
        project.rater_settings_of(loaded, options) if rater is None else rater,
        loaded.evaluation.subject_name,
        loaded.settings.redact.patterns if has_settings else (),
        options.scoring,
        traces,
    )
    try:
        dumped: bytes = cloudpickle.dumps(recipe)
    except Exception as error:
        raise UsageError(
            f"the agent or the rater cannot be sent to the workers: {error}",
            actions=['Pass a function, or settings such as {"adapter": "python", "target": "module:function"}.'],
        ) from error
    return dumped
