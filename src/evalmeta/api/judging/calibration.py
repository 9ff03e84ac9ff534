"""Checking a rater of the project against pairs in a file that people have judged."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.engine.raters import bind_rater, calibration
from evalmeta.engine.raters.labels import Labels, Pair, read_pairs, write_pairs
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.prompts import METRICS_WITH_EXAMPLES, CustomRubric, bind_rubric
from evalmeta.errors import ProjectError, UsageError
from evalmeta.model.run_options import OFFLINE_RATER, Scoring
from evalmeta.org.subjects import rater_of, rater_settings
from evalmeta.package.project import find_project
from evalmeta.store.judgements import FolderRatings, keep_check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.engine.interfaces import Rater
    from evalmeta.engine.raters.llm.providers import Usage
    from evalmeta.engine.raters.llm.rater import ModelRater
    from evalmeta.model.settings import RaterSettings
    from evalmeta.model.store import Store


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check of a rater found: every pair with its verdict, and the effect of other forms of the answers.

    `left_out` is the number of pairs that the rater already has as examples, `choice` are the chosen examples, and
    `usage` are the requests and tokens of an LLM rater.
    """

    rated: tuple[calibration.RatedPair, ...]
    probes: tuple[calibration.Probe, ...] = ()
    left_out: int = 0
    choice: calibration.ExampleChoice | None = None
    usage: Usage | None = None


async def check_rater(  # noqa: PLR0913 - as documented
    file: Path,
    *,
    rater: str = OFFLINE_RATER,
    start: Path | None = None,
    metric: str = calibration.RESPONSES.metric,
    label_threshold: float | None = None,
    probes: int | None = None,
    examples: int = 0,
    seed: int = 0,
    max_requests: int = limits.CHECK_REQUESTS,
    on_start: Callable[[int], object] | None = None,
) -> Checked:
    """Rate the labelled pairs of a file, and say how well the rater agrees with the labels.

    `metric` is what is rated: the canonical name of an expectation. `label_threshold` is the least score that means
    right, if the labels are scores. `probes` is the number of pairs to rate again in other forms; None means all for
    the offline rater, and `limits.PROBED_PAIRS` for others. `on_start` is called with the number of requests that an
    LLM rater may need, before the first one.
    """
    if label_threshold is not None and not math.isfinite(label_threshold):
        raise UsageError(f"label_threshold is {label_threshold}; it must be a finite number")
    found = _find(rater, start or Path())
    settings, task = found.settings, calibration.RatingTask(metric, found.threshold)
    choices = settings.choices if isinstance(settings, LlmRater) else {}
    pairs = read_pairs(file, labels=Labels(label_threshold, choices, found.threshold), metric=metric)
    if examples:
        _check_examples(rater, settings, pairs, examples)
        if metric not in METRICS_WITH_EXAMPLES:
            raise UsageError(f"the prompt of {metric} accepts no examples; only {', '.join(METRICS_WITH_EXAMPLES)} do")
    probed = limits.PROBED_PAIRS if probes is None and settings.adapter != OFFLINE_RATER else probes
    async with AsyncExitStack() as stack:
        cache = FolderRatings(found.store)
        stack.callback(cache.close)
        bound = bind_rater(settings, root=found.root, cache=cache)
        stack.push_async_callback(bound.close)
        model = _model_rater(bound, settings)
        fresh = _without_examples(pairs, model)
        if isinstance(settings, LlmRater) and model is not None:
            needed = _ratings(len(fresh), probed, examples) * settings.sample_count
            _limit(model, needed=needed, allowed=max_requests)
            if on_start:
                on_start(needed)
        rated = await calibration.calibrate(fresh, bound, task)
        if isinstance(settings, LlmRater) and found.store is not None and metric == calibration.RESPONSES.metric:
            judge = rater_of(settings, root=found.root)
            keep_check(found.store.folder, judge, found.threshold, calibration.agreement(rated).judge_check)
        effects: tuple[calibration.Probe, ...] = ()
        if probed != 0:
            effects = await calibration.probe(calibration.pick_probed(rated, probed, seed=seed), bound, task)
        if model is None:
            return Checked(rated, effects, len(pairs) - len(fresh))
        choice = None
        if examples:
            choice = await calibration.choose_examples(rated, model, examples, seed=seed, task=task)
        return Checked(rated, effects, len(pairs) - len(fresh), choice, model.requests.usage)


def custom_rubric(name: str, *, start: Path | None = None) -> CustomRubric:
    """Return the project's own rubric of an LLM rater."""
    found = _find(name, start or Path())
    if not isinstance(found.settings, LlmRater):
        raise UsageError(f"the rater {name!r} has no prompts; only LLM raters do")
    return bind_rubric(found.settings, root=found.root)


def save_examples(choice: calibration.ExampleChoice, file: Path) -> None:
    """Write chosen examples to a new file; raise UsageError if it exists or cannot be written."""
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(write_pairs(choice.examples))
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None


def _model_rater(bound: Rater, settings: RaterSettings) -> ModelRater | None:
    if not isinstance(settings, LlmRater):
        return None
    from evalmeta.engine.raters.llm.rater import ModelRater

    return bound if isinstance(bound, ModelRater) else None


def _without_examples(pairs: Sequence[Pair], model: ModelRater | None) -> tuple[Pair, ...]:
    """Return the pairs that the rater does not know: its own examples would be judged too well."""
    known = {(example.expected, example.actual) for example in model.rubric.examples} if model is not None else set()
    fresh = tuple(pair for pair in pairs if (pair.expected, pair.actual) not in known)
    if not fresh:
        raise UsageError("all pairs are examples of the rater: use other pairs to check it")
    return fresh


def _check_examples(name: str, settings: RaterSettings, pairs: Sequence[Pair], count: int) -> None:
    if not isinstance(settings, LlmRater):
        raise UsageError(f"the rater {name!r} accepts no examples; only LLM raters do")
    needed, right = calibration.min_pairs(count), sum(pair.right for pair in pairs)
    if len(pairs) < needed:
        raise UsageError(f"{len(pairs)} labelled pairs are too few to choose {count} examples; {needed} are needed")
    if right in {0, len(pairs)}:
        raise UsageError("all pairs have the same label: to choose examples, right and wrong answers are needed")


def _ratings(pairs: int, probed: int | None, examples: int) -> int:
    """Return at most how many ratings a check needs."""
    others = min(pairs, probed if probed is not None else pairs) * len(calibration.PROBES)
    return pairs + others + (calibration.choice_ratings(pairs) if examples else 0)


def _limit(model: ModelRater, *, needed: int, allowed: int) -> None:
    if needed > allowed:
        raise UsageError(
            f"the check may need {needed:,} requests, and the limit is {allowed:,}; nothing was sent",
            actions=(f"Add --max-requests {needed}, or --probes 0, or use fewer pairs.",),
        )
    model.requests.limit = allowed


class _Found(NamedTuple):
    """The settings of a rater, its project's folders, and the minimum rating that passes."""

    settings: RaterSettings
    root: Path
    store: Store | None
    threshold: float


def _find(name: str, start: Path) -> _Found:
    """Find the rater's settings; without a project, only `rules` is available."""
    try:
        project = find_project(start)
    except ProjectError:
        if name != OFFLINE_RATER:
            raise
        return _Found(rater_settings({}, name), start, None, Scoring().threshold)
    settings = project.settings
    return _Found(
        rater_settings(settings.raters, name, root=project.root),
        project.root,
        project.store,
        settings.run_options().scoring.threshold,
    )
