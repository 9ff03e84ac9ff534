"""Entries of an evaluation that are coroutine functions run together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import evalmeta

COMMAND = [sys.executable, "-m", "pytest", "-p", "evalmeta.pytest_plugin", "-p", "xdist.plugin", "-W", "error"]
SOURCES = str(Path(evalmeta.__file__).parent.parent)
AGENT = """
import asyncio
from pathlib import Path

import evalmeta
import pytest

asked, running, most = [], 0, 0


async def agent(number):
    global running, most
    asked.append(number)
    running += 1
    most = max(most, running)
    for _ in range(20):
        await asyncio.sleep(0)
    running -= 1
    return number


@pytest.fixture(scope="module")
def module_agent():
    return agent


"""
TWENTY = """
@evalmeta.evaluation(min_pass_rate=0.9)
@pytest.mark.parametrize("number", range(20))
async def test_agent(number, module_agent):
    assert await module_agent(number) not in {3, 5}
"""


def session(folder: Path, test: str, *words: str) -> str:
    """Return what pytest prints about a module of tests, run as a program of its own."""
    (folder / "test_it.py").write_text(AGENT + test)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": SOURCES}
    command = [*COMMAND, "--rootdir", str(folder), *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ([], 10),
        (["--evalmeta-concurrency", "4"], 4),
        pytest.param(["-n", "2", "--dist", "loadfile"], 10, marks=pytest.mark.slow),
        # A worker does not know which entries others run.
        pytest.param(["-n", "2"], 1, marks=pytest.mark.slow),
    ],
)
def test_ten_entries_run_at_a_time(tmp_path: Path, words: list[str], most: int) -> None:
    printed = session(tmp_path, f"{TWENTY}\n\ndef test_most():\n    assert most == {most}\n", *words)

    assert "PASSED test_it.py::test_agent: 90 % (18 of 20); at least 90 % must pass" in printed
    assert "  3: assert 3 not in {3, 5}" in printed
    assert "20 passed, 2 xfailed" in printed


@pytest.mark.slow
def test_the_number_of_entries_at_a_time_is_an_argument_of_the_decorator(tmp_path: Path) -> None:
    test = TWENTY.replace("0.9", "0, concurrency=3")
    assert "20 passed, 2 xfailed" in session(tmp_path, f"{test}\n\ndef test_most():\n    assert most == 3\n")


@pytest.mark.slow
def test_entries_stay_together_if_tests_are_shuffled(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_collection_modifyitems(items):\n    items[:] = [*items[::2], *items[1::2]]\n"
    )
    others = "\n\n@pytest.mark.parametrize('n', range(9))\ndef test_other(n):\n    assert running == 0\n"
    printed = session(tmp_path, TWENTY + others + "\n\ndef test_zzz():\n    assert most == 10\n")

    assert "29 passed, 2 xfailed" in printed


@pytest.mark.slow
def test_iterations_and_methods_run_together(tmp_path: Path) -> None:
    test = """
class TestAgent:
    @evalmeta.evaluation(iterations=2)
    @pytest.mark.parametrize("number", [1, 2])
    async def test_method(self, number, evalmeta_iteration):
        assert await agent(number) and evalmeta_iteration in {1, 2}


def test_most():
    assert most == 4
"""
    printed = session(tmp_path, test)

    assert "6 passed" in printed
    assert "  by iteration: 2 of 2, 2 of 2" in printed


@pytest.mark.slow
def test_entries_with_fixtures_of_their_own_run_one_after_another_and_it_says_why(tmp_path: Path) -> None:
    test = """
@pytest.fixture
def own(tmp_path):
    return tmp_path


@evalmeta.evaluation
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_agent(number, own):
    assert await agent(number) and own.exists() and most == 1
"""
    printed = session(tmp_path, test)

    assert "4 passed" in printed
    assert '  the tests ran one after another: the fixture own has the scope "function"' in printed


@pytest.mark.slow
def test_entries_of_different_values_of_a_wider_fixture_do_not_share_it(tmp_path: Path) -> None:
    test = """
@pytest.fixture(scope="module", params=["a", "b"])
def model(request):
    yield request.param


@evalmeta.evaluation
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_agent(number, model):
    asked.append(model)
    assert await agent(number) and most <= 3


def test_models():
    assert (asked.count("a"), asked.count("b"), most) == (3, 3, 3)
"""
    assert "8 passed" in session(tmp_path, test, "-p", "no:randomly")


def test_skipped_entries_are_not_asked_and_selected_ones_are(tmp_path: Path) -> None:
    test = """
@evalmeta.evaluation
@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.skip), 3, 4])
async def test_agent(number):
    assert await agent(number)


def test_asked():
    assert sorted(asked) == [1, 3]
"""
    assert "4 passed, 1 skipped, 1 deselected" in session(tmp_path, test, "-k", "not 4")


@pytest.mark.slow
def test_a_session_that_stops_cancels_the_entries_in_flight(tmp_path: Path) -> None:
    test = """
@evalmeta.evaluation(min_pass_rate=0)
@pytest.mark.parametrize("number", range(20))
async def test_agent(number):
    if number == 1:
        raise ConnectionError("no answer")
    if number > 1:
        try:
            await asyncio.Event().wait()
        finally:
            with Path("cancelled.txt").open("a") as file:
                print(number, file=file)
"""
    printed = session(tmp_path, test, "-x")

    assert "1 failed, 1 passed" in printed
    assert "STOPPED test_it.py::test_agent: 100 % (1 of 1), 1 error" in printed
    assert len((tmp_path / "cancelled.txt").read_text().splitlines()) == 10
    assert "ConnectionError: no answer" in printed
    assert "event_loop.py" not in printed


@pytest.mark.slow
def test_last_failed_runs_the_entries_of_a_failed_evaluation(tmp_path: Path) -> None:
    test = TWENTY.replace("0.9", "1") + "\n\ndef test_other():\n    pass\n"
    assert "19 passed, 2 xfailed" in session(tmp_path, test)
    assert "18 passed, 2 xfailed" in session(tmp_path, test, "--lf")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["await asyncio.Event().wait()", "pytest.exit('enough')", "pytest.skip('later')"])
def test_entries_can_end_as_other_tests_do(tmp_path: Path, ending: str) -> None:
    test = f"""
@evalmeta.evaluation
@pytest.mark.parametrize("number", [1, 2])
async def test_agent(number):
    async with asyncio.timeout(0.01):
        {ending}
"""
    expected = {"await": "TimeoutError", "pytest.exit": "Exit: enough", "pytest.skip": "2 skipped"}
    assert next(text for begin, text in expected.items() if ending.startswith(begin)) in session(tmp_path, test)


def test_a_coroutine_function_that_returns_something_has_the_warning_of_other_tests(tmp_path: Path) -> None:
    test = """
@evalmeta.evaluation
@pytest.mark.parametrize("value", [None, False])
async def test_agent(value):
    return value
"""
    warned = session(tmp_path, test, "-W", "default::pytest.PytestReturnNotNoneWarning")
    assert "PytestReturnNotNoneWarning: Test functions should return None, but test_it.py::test_agent[False]" in warned
    assert "3 passed, 1 warning" in warned
