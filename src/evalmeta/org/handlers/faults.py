"""Errors as callers are told them: a code of Salesforce's, a message, and nothing about this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.errors import NotFound, OrgFault, SettingsError, StoreError, SubjectNotBound

if TYPE_CHECKING:
    from evalmeta.errors import EvalmetaError
    from evalmeta.org.organization import Organization

__all__ = ["code_of", "message_of"]


def code_of(error: EvalmetaError, *, otherwise: str) -> str:
    """Gives the error's code; `otherwise` is the API's own for a message that it cannot use."""
    match error:
        case OrgFault():
            return error.code
        case SubjectNotBound():
            return "SUBJECT_NOT_BOUND"
        case SettingsError():
            return "INVALID_SUBJECT"
        case NotFound():
            return "INVALID_INPUT"
        case StoreError():
            return "SERVER_UNAVAILABLE"
        case _:
            return otherwise


def message_of(error: EvalmetaError, org: Organization) -> str:
    """Gives what is wrong and, on the lines after the first, what to do; without code and without paths."""
    head = str(error).removeprefix(f"{error.code}: ") if isinstance(error, OrgFault) else str(error)
    return org.without_paths("\n".join((" ".join(head.splitlines()), *error.actions)))
