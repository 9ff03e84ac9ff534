"""What conversations with agents of frameworks share: approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.errors import ApprovalNeeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.evaluation import Case


def check_approved(waiting: Sequence[str], case: Case) -> None:
    """Raise ApprovalNeeded if the agent waits for an approval that the case does not give."""
    missing = sorted({name for name in waiting if name not in case.approve})
    if missing:
        raise ApprovalNeeded(
            f"the agent waits for the approval of {', '.join(missing)}; "
            f"to give it, add this line to the case: approve: [{', '.join(missing)}]"
        )
