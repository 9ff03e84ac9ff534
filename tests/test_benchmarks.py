"""The benchmarks run: with tiny sizes, which say nothing about speed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
ROW = re.compile(r"^\| `([\w-]+)` \|", re.MULTILINE)
SECTIONS = ("public", "engine", "other")


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/run.py", *words]
    env = {"PYTHONPATH": "tests", "PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=ROOT, env=env, check=False, capture_output=True, text=True, timeout=600)


def names(*words: str) -> Sequence[str]:
    return bench("--list", *words).stdout.split()


@pytest.mark.slow
def test_the_rows_are_selected_by_name_and_section() -> None:
    assert {name.partition("-")[0] for name in names("scale")} == {"scale"}
    assert "scale" not in {name.partition("-")[0] for name in names()}
    assert names("suite") == ["suite-run", "suite-evaluate", "suite-in-flight", "suite-rate"]
    assert {name.partition("-")[0] for name in names("engine")} == {"engine"}
    assert len(names()) == len(set(names())) == sum(len(names(section)) for section in SECTIONS)


@pytest.mark.slow
def test_a_word_that_no_row_has_is_refused_with_the_usage() -> None:
    refused = bench("speed-of-light")
    assert refused.returncode == 2
    assert "no row's name contains speed-of-light" in refused.stderr


@pytest.mark.slow
def test_performance_md_has_every_row_that_make_bench_prints() -> None:
    assert ROW.findall(PAGE.read_text(encoding="utf-8")) == list(names())


@pytest.mark.slow
@pytest.mark.parametrize("section", [*SECTIONS, pytest.param("scale", marks=pytest.mark.postgres)])
def test_every_row_can_be_measured(section: str) -> None:
    done = bench("--tiny", section)
    assert done.returncode == 0, done.stderr
    assert ROW.findall(done.stdout) == list(names(section))
