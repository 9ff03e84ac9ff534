from __future__ import annotations

import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.remote.ray_cluster import cluster_here
from ray_nodes import BIN

if TYPE_CHECKING:
    from pathlib import Path

    from ray_nodes import Nodes

_AGENT = """
import asyncio, os

async def answer(utterance):
    await asyncio.sleep(float(os.environ.get("AGENT_SECONDS", "0.05")))
    if "broken" in utterance:
        raise ValueError("the agent is broken")
    return f"Hello from {utterance} in {os.getpid()}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(_AGENT)
    return tmp_path


def write_cases(file: Path, count: int, *, broken: int = 0) -> None:
    kinds = ("broken" if number < broken else "case" for number in range(count))
    rows = ({"input": f"{kind} {number}", "contains": "Hello"} for number, kind in enumerate(kinds))
    file.write_text("\n".join(map(json.dumps, rows)))


def command(*words: str) -> list[str]:
    return [str(BIN / "evalmeta"), "test", "run", *words, "--agent", "shop:answer", "--wait"]


def run(project: Path, nodes: Nodes, words: list[str], *, code: int = 0, **more: str) -> str:
    done = subprocess.run(
        words,
        check=False,
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        env=nodes.environment | more,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def start(project: Path, nodes: Nodes, words: list[str], **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=nodes.environment | more,
    )


def stored(project: Path) -> Counter[int]:
    """Return how often each case has a result in the newest run."""
    file = project / ".evalmeta" / "org.sqlite3"
    if not file.exists():
        return Counter()
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        sql = "SELECT number FROM case_result WHERE run_id = (SELECT max(id) FROM run)"
        return Counter(number for (number,) in database.execute(sql))
    except sqlite3.OperationalError:
        return Counter()
    finally:
        database.close()


def wait_for_results(project: Path, count: int, running: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while len(stored(project)) < count:
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.05)


def wait_for_workers(project: Path, count: int, running: subprocess.Popen[str]) -> None:
    """Wait until so many workers have answered."""
    workers: set[bytes] = set()
    while len(workers) < count:
        wait_for_results(project, 1, running)
        database = sqlite3.connect(project / ".evalmeta" / "org.sqlite3")
        workers |= {re.findall(rb" in (\d+)", body)[0] for (body,) in database.execute("SELECT body FROM case_result")}
        database.close()
        assert running.poll() is None, running.communicate()[0]


def asked_twice(output: str) -> int:
    told = re.search(r"asked twice: ([\d,]+) case", output)
    return int(told[1].replace(",", "")) if told else 0


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_suite_on_ray_has_the_results_of_this_machine(project: Path, cluster: Nodes) -> None:
    write_cases(project / "first.jsonl", 60, broken=3)
    write_cases(project / "second.jsonl", 40)
    found = []
    for on in ((), ("--on", "ray"), ("--on", cluster.client_url)):
        run(project, cluster, command("first.jsonl", "second.jsonl", *on), code=1)
        found.append(results(project))

    assert found[1] == found[2] == found[0]
    assert len(found[0]) == 100


def results(project: Path) -> list[object]:
    """Return the results of the newest two runs, without what depends on the moment."""
    database = sqlite3.connect(project / ".evalmeta" / "org.sqlite3")
    sql = "SELECT id, definition FROM run ORDER BY id DESC LIMIT 2"
    rows = [
        (definition, json.loads(re.sub(r" in \d+", "", body.decode())))
        for run_id, definition in [*database.execute(sql)]
        for (body,) in database.execute("SELECT body FROM case_result WHERE run_id = ? ORDER BY number", (run_id,))
    ]
    database.close()
    for _, body in rows:
        body[4:6] = []
        if body[5]:
            body[5][3] = None
    return rows


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_node_that_dies_costs_no_result_and_its_cases_are_asked_again(project: Path, cluster: Nodes) -> None:
    write_cases(project / "cases.jsonl", 24_000)
    running = start(project, cluster, command("cases.jsonl", "--concurrency", "200", "--on", "ray"))
    wait_for_workers(project, 3, running)
    cluster.kill("127.0.0.4")
    output, _ = running.communicate(timeout=120)

    assert running.returncode == 0, output
    assert stored(project) == Counter(range(1, 24_001))
    assert 0 < asked_twice(output) <= 200


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_killed_command_is_completed_by_resume_with_every_case_once(project: Path, cluster: Nodes) -> None:
    write_cases(project / "cases.jsonl", 6_000)
    running = start(project, cluster, command("cases.jsonl", "--concurrency", "200", "--on", "ray"))
    wait_for_results(project, 1_000, running)
    running.kill()
    running.communicate(timeout=60)
    kept = stored(project)
    assert 1_000 <= len(kept) < 6_000

    run(project, cluster, [str(BIN / "evalmeta"), "test", "resume", "--unfinished", "--on", "ray"])
    assert stored(project) == Counter(range(1, 6_001))


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_ctrl_c_keeps_results_and_leaves_a_run_that_can_be_resumed(project: Path, cluster: Nodes) -> None:
    write_cases(project / "cases.jsonl", 4_000)
    running = start(project, cluster, command("cases.jsonl", "--concurrency", "100", "--on", cluster.client_url))
    wait_for_results(project, 500, running)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == 130, output
    assert "test resume" in output

    run(project, cluster, [str(BIN / "evalmeta"), "test", "resume", "--unfinished", "--on", "ray"])
    assert stored(project) == Counter(range(1, 4_001))


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_run_on_ray_stops_at_its_limit_of_errors(project: Path, cluster: Nodes) -> None:
    write_cases(project / "cases.jsonl", 300, broken=300)
    output = run(project, cluster, command("cases.jsonl", "--max-errors", "5", "--on", "ray"), code=1)

    assert "stopped at error 5 (max_errors)" in output
    assert len(stored(project)) < 60


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_module_that_only_this_machine_has_is_named_with_the_node(
    project: Path, cluster: Nodes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "only_here.py").write_text("")
    (project / "shop.py").write_text(f"import only_here\n{_AGENT}")
    write_cases(project / "cases.jsonl", 3)
    output = run(project, cluster, command("cases.jsonl", "--on", "ray"), code=4, PYTHONPATH=str(elsewhere))

    assert "cannot run the cases" in output
    assert "No module named 'only_here'" in output


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_no_secret_of_a_run_reaches_what_ray_writes(project: Path, cluster: Nodes) -> None:
    secret = "sk-" + "b7" * 20
    (project / "evalmeta.toml").write_text(
        f'[subjects.shop]\nadapter = "http"\nurl = "http://127.0.0.1:9/ask"\n'
        f'headers = {{ Authorization = "{secret}" }}\n'
    )
    write_cases(project / "cases.jsonl", 3)
    words = [str(BIN / "evalmeta"), "test", "run", "cases.jsonl", "--agent", "shop", "--wait", "--on", "ray"]
    output = run(project, cluster, words, code=1, SHOP_API_KEY=secret)
    written = [file for file in cluster.folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]

    assert written == []
    assert secret not in output


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_without_a_cluster_one_is_started_on_this_machine_and_ends_with_the_command(
    project: Path, cluster: Nodes
) -> None:
    write_cases(project / "cases.jsonl", 20)
    folder = cluster.folder / "own"
    folder.mkdir()
    output = run(project, cluster, command("cases.jsonl", "--on", "ray"), RAY_ADDRESS="", RAY_TMPDIR=str(folder))

    assert "20 passed" in output
    processes = subprocess.run(["/bin/ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    assert str(folder) not in processes


@pytest.mark.slow
def test_without_the_extra_the_error_names_it(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.jsonl", 1)
    (tmp_path / "shop.py").write_text(_AGENT)
    program = "import sys; sys.modules['ray'] = None; from evalmeta.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, *command("cases.jsonl", "--on", "ray")[1:]],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert done.returncode == 2
    assert "running on Ray requires the extra 'ray'" in done.stderr
    assert "pip install 'evalmeta[ray]'" in done.stderr
    assert stored(tmp_path) == Counter()


def test_only_a_cluster_of_this_user_that_answers_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    file = tmp_path / "ray" / "ray_current_cluster"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert cluster_here() == ""
        file.write_text(address)
        assert cluster_here() == address
        with monkeypatch.context() as as_another:
            as_another.setattr("os.getuid", lambda: file.stat().st_uid + 1)
            assert cluster_here() == ""
    assert cluster_here() == ""


@pytest.mark.slow
@pytest.mark.parametrize("on", ["dask", "ray://host"])
def test_what_is_not_a_cluster_is_an_error_with_an_example(tmp_path: Path, on: str) -> None:
    write_cases(tmp_path / "cases.jsonl", 1)
    done = subprocess.run(
        [sys.executable, "-m", "evalmeta", *command("cases.jsonl", "--on", on)[1:]],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert done.returncode == 2
    assert "does not name a cluster" in done.stderr
    assert "ray://HOST:PORT" in done.stderr


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_cluster_that_does_not_answer_is_an_error_before_anything_starts(project: Path, cluster: Nodes) -> None:
    write_cases(project / "cases.jsonl", 1)
    begun = time.monotonic()
    output = run(project, cluster, command("cases.jsonl", "--on", "ray://127.0.0.9:9"), code=4)

    assert "no cluster of Ray answers at ray://127.0.0.9:9: Connection refused" in output
    assert time.monotonic() - begun < 60
    assert not stored(project)


_EVALUATING = """
import json, sys, threading
import evalmeta

class Agent:
    def __init__(self):
        self.lock = threading.Lock()
    def answer(self, utterance):
        return "Hello"

def answer(utterance):
    return "Hello from " + utterance

cases = [{"input": f"case {number}", "contains": "Hello"} for number in range(40)]
done = evalmeta.evaluate(cases, answer, on="ray", journal="journal")
again = evalmeta.evaluate(cases, answer, on="ray", journal="journal")
bound = evalmeta.evaluate("bound.yaml", on="ray")
try:
    evalmeta.evaluate(cases, Agent().answer, on="ray")
except evalmeta.errors.UsageError as error:
    refused = str(error)
counts = [(run.summary.passed, run.summary.total) for run in (done, again, bound)]
print(json.dumps([counts, again.run.id == done.run.id, refused]))
"""


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_evaluate_asks_a_cluster(cluster: Nodes, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(_EVALUATING)
    (tmp_path / "shop.py").write_text("def answer(utterance):\n    return 'Hello from the shop'\n")
    (tmp_path / "evalmeta.toml").write_text('[subjects.Shop]\nadapter = "python"\ntarget = "shop:answer"\n')
    (tmp_path / "bound.yaml").write_text("subjectName: Shop\ntestCases:\n- utterance: Hi\n  contains: the shop\n")
    done = subprocess.run(
        [str(BIN / "python"), "script.py"],
        check=False,
        cwd=tmp_path,
        env=cluster.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    counts, is_same, refused = json.loads(done.stdout.splitlines()[-1])
    assert counts == [[40, 40], [40, 40], [1, 1]]
    assert is_same
    assert "cannot be sent to the workers" in refused


_PAID_AGENT = """
def answer(utterance):
    return {"outcome": "Hello", "tokens": {"input": 1000, "output": 0, "model": "clever-1"}}
"""
# An answer costs $1.
_PRICES = (
    '[subjects.Shop]\nadapter = "python"\ntarget = "shop:answer"\n\n[prices."clever-1"]\ninput = 1000\noutput = 0\n'
)


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_cost_limit_holds_for_all_workers_together(project: Path, cluster: Nodes) -> None:
    (project / "shop.py").write_text(_PAID_AGENT)
    (project / "evalmeta.toml").write_text(_PRICES)
    write_cases(project / "cases.jsonl", 60)
    words = command("cases.jsonl", "--max-cost", "10", "--concurrency", "3", "--on", "ray")

    output = run(project, cluster, words, code=100)

    assert re.search(r"(4[89]|50) cases not run: cost limit of \$10.00 reached, \$1[0-2].00 spent", output), output
    assert 10 <= stored(project).total() <= 12
