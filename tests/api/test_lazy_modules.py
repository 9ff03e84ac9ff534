from __future__ import annotations

import subprocess
import sys

import pytest

from evalmeta import api


def test_a_module_is_imported_when_it_is_first_used() -> None:
    code = (
        "import sys; from evalmeta import api; name = 'evalmeta.api.runs.finding';"
        "print(name in sys.modules, api.runs.finding.__name__ == name, name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


@pytest.mark.parametrize("name", ["nothing", "_files", "runs_"])
def test_what_is_not_a_module_is_refused(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'evalmeta.api' has no attribute '{name}'"):
        getattr(api, name)
