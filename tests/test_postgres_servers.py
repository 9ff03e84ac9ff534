"""The servers that tests of shared stores use."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from postgres_servers import started_postgres
from relay import relay

if TYPE_CHECKING:
    from postgres_servers import PostgresServers, PostgresStore

STARTED = """
import os, sys
from postgres_servers import postgres_servers
with postgres_servers() as servers:
    for server in servers:
        print(server.folder, server.port)
    sys.stdout.flush()
    input()
    os._exit(1) if sys.argv[1] == "killed" else sys.exit("failed")
"""
# The first server loads what another user may not be able to read.
UNPRIVILEGED = """
import os, pwd
from postgres_servers import started_postgres
if not os.geteuid():
    with started_postgres():
        pass
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
with started_postgres() as postgres, postgres.connect() as admin:
    print(bool(os.geteuid()), admin.execute("SELECT 1").fetchone())
"""
ASKED = """
import os
import psycopg, pytest

def test_first(): psycopg.connect(os.environ["EVALMETA_STORE"]).execute("CREATE TABLE mine (i int)")
def test_second(): psycopg.connect(os.environ["EVALMETA_STORE"]).execute("CREATE TABLE mine (i int)")
@pytest.mark.sqlite
def test_of_sqlite(): raise AssertionError
"""


def test_each_store_is_empty_and_sees_no_other(postgres_servers: PostgresServers) -> None:
    with postgres_servers.store() as store, postgres_servers.store() as other:
        for url in (store.direct, other.pooled):
            with psycopg.connect(url) as connection:
                connection.execute("CREATE TABLE mine (number int)")
        with psycopg.connect(store.pooled) as connection:
            assert connection.execute("SELECT current_schema(), count(*) FROM mine").fetchone() == (store.name, 0)
        with psycopg.connect(store.direct) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"TABLE {other.name}.mine")
    with postgres_servers.postgres.connect() as admin:
        [gone] = admin.execute("SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)", [[store.name, other.name]])
    assert gone == (0,)


def test_texts_are_ordered_otherwise_than_their_bytes(postgres_store: PostgresStore) -> None:
    with psycopg.connect(postgres_store.direct) as connection:
        assert connection.execute("SELECT 'a' < 'B', 'a' < 'B' COLLATE \"C\"").fetchone() == (True, False)


def test_the_pool_gives_the_next_transaction_another_session(postgres_store: PostgresStore) -> None:
    with psycopg.connect(postgres_store.pooled) as first, psycopg.connect(postgres_store.pooled) as second:
        sessions = {_session(first), _session(second)}
        first.commit()
        second.commit()
        later = set()
        for _ in sessions:
            later.add(_session(first))
            first.commit()
    assert len(sessions) == 2
    assert later == sessions


def _session(connection: psycopg.Connection[tuple[object, ...]]) -> object:
    return connection.execute("SELECT pg_backend_pid()").fetchone()


def test_a_wrong_password_is_refused(store_url: str) -> None:
    wrong = store_url.replace("%3A", "%3B")
    assert wrong != store_url
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(wrong)


def test_a_relay_is_cut_and_mended(postgres_store: PostgresStore, postgres_servers: PostgresServers) -> None:
    with relay(postgres_servers.postgres.port) as passing:
        url = postgres_store.direct.replace(str(postgres_servers.postgres.port), str(passing.port))
        with closing(psycopg.connect(url)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            passing.cut()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        passing.mend()
        with psycopg.connect(url) as again:
            assert again.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("end", ["failed", "killed"])
def test_servers_end_with_their_process(end: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, end], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        started = [process.stdout.readline().split() for _ in range(2)]
        process.communicate("\n")
    assert process.returncode == 1
    for folder, port in started:
        _wait_until_closed(int(port))
        assert end == "killed" or not Path(folder).exists()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_closed(port: int) -> None:
    while True:
        with closing(socket.socket()) as asking:
            if asking.connect_ex(("127.0.0.1", port)):
                return


@pytest.mark.slow
@pytest.mark.postgres
def test_a_killed_postgres_starts_again_with_what_was_committed() -> None:
    with started_postgres(durable=True) as postgres:
        with postgres.connect() as admin:
            assert admin.execute("SHOW fsync").fetchone() == ("on",)
            admin.execute("CREATE TABLE kept (number int)")
        postgres.kill()
        with pytest.raises(psycopg.OperationalError):
            postgres.connect()
        postgres.start()
        with postgres.connect() as admin:
            assert admin.execute("SELECT count(*) FROM kept").fetchone() == (0,)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_user_without_privileges_starts_servers() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    started = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert (started.stdout, started.returncode) == ("True (1,)\n", 0), started.stderr


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("on", ["direct", "pooled"])
def test_each_test_has_a_store_of_its_own_where_a_variable_says_so(tmp_path: Path, on: str) -> None:
    here = Path(__file__).parent
    (tmp_path / "test_asked.py").write_text(ASKED)
    (tmp_path / "conftest.py").write_text((here / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  sqlite\n  postgres\n  timeout\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(here), "EVALMETA_TESTS_ON": on, "PYTEST_ADDOPTS": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed, 1 deselected" in run.stdout, run.stdout + run.stderr
