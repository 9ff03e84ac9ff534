"""Members of MLflow that evalmeta does not have."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from evalmeta import mlflow


def test_what_evalmeta_does_not_have_is_that_of_an_installed_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = ModuleType("mlflow")
    installed.log_model = lambda: "logged"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", installed)
    assert mlflow.log_model() == "logged"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no installed MLflow has it"):
        mlflow.load_model  # type: ignore[attr-defined]  # noqa: B018 - reading it is the test


def test_a_special_name_is_never_looked_up_in_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = ModuleType("mlflow")
    installed.__wrapped__ = 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", installed)
    with pytest.raises(AttributeError, match=r"module 'evalmeta\.mlflow' has no attribute '__wrapped__'"):
        mlflow.__wrapped__  # type: ignore[attr-defined]  # noqa: B018 - reading it is the test
