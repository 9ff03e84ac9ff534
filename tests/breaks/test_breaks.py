from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from breaks.broken_copy import Break, apply, copy_source, run_tests
from breaks.table import BREAKS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("broken", [pytest.param(broken, id=broken.what.replace(" ", "-")) for broken in BREAKS])
def test_tests_notice_a_break(broken: Break, tmp_path: Path) -> None:
    python = copy_source(tmp_path / "copy")
    apply(broken, tmp_path / "copy")
    outcome = run_tests(python, broken.tests)
    unnoticed = set(broken.tests) - outcome.failed
    assert not unnoticed, f"{broken.what}: no failure of {', '.join(sorted(unnoticed))}\n{outcome.output}"


def test_the_same_tests_pass_in_a_copy_that_is_not_broken(tmp_path: Path) -> None:
    python = copy_source(tmp_path / "copy")
    outcome = run_tests(python, sorted({test for broken in BREAKS for test in broken.tests}))
    assert outcome.code == 0, outcome.output


def test_each_break_is_listed_once() -> None:
    assert len({broken.what for broken in BREAKS}) == len(BREAKS) >= 60
