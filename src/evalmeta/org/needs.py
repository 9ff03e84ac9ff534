"""What a run needs besides its definition: an agent, a rater and custom scoring functions, each by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalmeta.engine.plan import select_cases

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run_options import RunOptions
    from evalmeta.model.settings import SubjectSettings


class Need(NamedTuple):
    """What must be usable before a run starts; several runs may have the same need.

    Attributes:
        kind: `subject`, `rater` or `function`.
        name: the agent's or the rater's name, or the path of a custom scoring function.
        subject_type: AGENT or PROMPT.
        subject: the agent's settings as JSON if the run has its own.
    """

    kind: str
    name: str
    subject_type: str = "AGENT"
    subject: str = ""


def needs_of(
    evaluation: Evaluation, options: RunOptions, *, subject: SubjectSettings | None = None, asks: bool = True
) -> list[Need]:
    """Return what a run needs; `subject` replaces the project's settings of the agent.

    A run that does not ask needs no agent. Only the selected cases count.
    """
    own = "" if subject is None else subject.model_dump_json(exclude_unset=True)
    agent = [Need("subject", evaluation.subject_name, evaluation.subject_type, own)] if asks else []
    return [*agent, Need("rater", options.scoring.rater), *function_needs(evaluation, options)]


def function_needs(evaluation: Evaluation, options: RunOptions) -> list[Need]:
    """Return the custom scoring functions of the selected cases, each once."""
    names = {
        str(expectation.terms["function"]): None
        for case in select_cases(evaluation, options)
        for turn in case.turns
        for expectation in turn.expectations
        if expectation.terms and "function" in expectation.terms
    }
    return [Need("function", name) for name in names]
