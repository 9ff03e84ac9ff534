"""Postgres, and PgBouncer in transaction mode before it, on loopback, for tests with the marker `postgres`.

A shell waits beside each server and stops it when this process ends, in whatever way.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

OWNER: Final = "owner"
DATABASE: Final = "evalmeta"
SECONDS: Final = 120
FOLDERS: Final = ("/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin")
# The shell's own input is a pipe of this process: it ends with it.
BESIDE: Final = '"$@" & cat >/dev/null; kill -$0 $! 2>/dev/null; wait $!'
# Texts have another order than their bytes, as in most databases of teams.
INITDB: Final = (
    *("--no-sync", "--no-instructions", "--auth=scram-sha-256", f"--username={OWNER}", "--encoding=UTF8"),
    *("--locale=C", "--locale-provider=icu", "--icu-locale=en-US"),
)
QUICK: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
SETTINGS: Final = (
    *("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "shared_buffers=32MB"),
    *("timezone=Asia/Kathmandu", "autovacuum=off", "log_min_messages=fatal", "max_wal_size=256MB"),
)
DISCONNECT: Final = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = %s"
# A client may use no setting, prepared statement or lock of a session: the next transaction has another one.
POOL: Final = """\
[databases]
* = host=127.0.0.1 port={database_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
server_round_robin = 1
auth_type = scram-sha-256
auth_file = {users}
auth_user = {owner}
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1
logfile = {log}
"""


class PostgresStore(NamedTuple):
    """A role with a schema of its own, and its addresses: of Postgres, and of PgBouncer."""

    name: str
    password: str
    direct: str
    pooled: str


def program(name: str) -> str:
    """Return the path of a program of Postgres or PgBouncer: distributions have some outside the path."""
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name), reverse=True
    )
    path = os.pathsep.join([*map(str, versions), os.environ.get("PATH", ""), *FOLDERS])
    found = shutil.which(name, path=path)
    assert found, f"{name} is not installed. Install it: apt-get install postgresql pgbouncer"
    return found


class Server:
    """A program that listens on a free port of loopback as an unprivileged user."""

    def __init__(self, folder: Path, name: str, *arguments: str, stopped_by: str = "INT") -> None:
        self.port = free_port()
        self.folder = folder
        self._command = [program(name), *arguments]
        self._stopped_by = stopped_by
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program; `wait_for_port` waits until it listens."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", BESIDE, self._stopped_by, *(part.format(port=self.port) for part in self._command)],
                **_unprivileged(),
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_for_port(self) -> None:
        """Return when the program accepts connections."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS).close()
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text(errors="replace")
                time.sleep(0.01)
            else:
                return

    def stop(self) -> None:
        """Stop the program and wait until it has ended."""
        if self._process:
            self._process.stdin.close()
            self._process.wait(SECONDS)
            self._process = None


class Postgres(Server):
    """A cluster; commits survive the end of the machine only if it is durable."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.password = secrets.token_hex(16)
        super().__init__(
            folder,
            *("postgres", "-D", str(folder / "data"), "-p", "{port}"),
            *(f"--{setting}" for setting in (*SETTINGS, *(() if durable else QUICK))),
        )
        (folder / "password").write_text(self.password)
        initdb = [program("initdb"), *INITDB, f"--pwfile={folder / 'password'}", "-D", str(folder / "data")]
        os.chown(folder / "password", *_ids())
        subprocess.run(initdb, **_unprivileged(), cwd=folder, check=True, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        """Start the cluster, and return when it answers."""
        super().start()
        deadline = time.monotonic() + SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text(errors="replace")
            time.sleep(0.02)

    def _answers(self) -> bool:
        import psycopg

        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """End the cluster at once, as a crash does."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        self.stop()

    def connect(self, database: str = DATABASE) -> Connection[tuple[object, ...]]:
        """Return a connection of the administrator that commits each statement."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=OWNER,
            password=self.password,
            dbname=database,
            autocommit=True,
            connect_timeout=SECONDS,
        )


class PostgresServers(NamedTuple):
    """Postgres, and the PgBouncer before it."""

    postgres: Postgres
    pool: Server

    @contextmanager
    def store(self) -> Iterator[PostgresStore]:
        """Make a role with an empty schema, and drop both at the end, whoever is connected."""
        name = f"team_{secrets.token_hex(6)}"
        # It must be quoted in an address.
        password = f"pass/word@:{secrets.token_hex(8)}"
        with self.postgres.connect() as admin:
            admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
            admin.execute(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
            admin.execute(f"ALTER ROLE {name} SET search_path = {name}")
        try:
            addresses = (address(name, password, server.port) for server in (self.postgres, self.pool))
            yield PostgresStore(name, password, *addresses)
        finally:
            # A test may have killed the server, and started it again.
            with self.postgres.connect() as admin:
                admin.execute(f"ALTER ROLE {name} NOLOGIN")
                admin.execute(DISCONNECT, [name])
                admin.execute(f"DROP OWNED BY {name} CASCADE")
                admin.execute(f"DROP ROLE {name}")


def address(name: str, password: str, port: int) -> str:
    """Return the address of the database for a role."""
    return f"postgresql://{name}:{quote(password, safe='')}@127.0.0.1:{port}/{DATABASE}"


@contextmanager
def started_postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """Yield a running Postgres with an empty database, which tests may kill and start again."""
    with _folder() as folder:
        postgres = Postgres(folder, durable=durable)
        try:
            postgres.start()
            with postgres.connect("postgres") as admin:
                admin.execute(f"CREATE DATABASE {DATABASE}")
            yield postgres
        finally:
            postgres.stop()


@contextmanager
def started_pool(postgres: Postgres) -> Iterator[Server]:
    """Yield a running PgBouncer in transaction mode before a Postgres."""
    with _folder() as folder:
        pool = Server(folder, "pgbouncer", "--quiet", str(folder / "pool.ini"), stopped_by="KILL")
        users, settings = folder / "users", folder / "pool.ini"
        users.write_text(f'"{OWNER}" "{postgres.password}"\n')
        settings.write_text(
            POOL.format(
                port=pool.port, database_port=postgres.port, users=users, owner=OWNER, log=folder / "pgbouncer.log"
            )
        )
        for path in (users, settings):
            os.chown(path, *_ids())
        try:
            pool.start()
            pool.wait_for_port()
            yield pool
        finally:
            pool.stop()


@contextmanager
def postgres_servers(*, durable: bool = False) -> Iterator[PostgresServers]:
    """Yield a running Postgres and a running PgBouncer."""
    with started_postgres(durable=durable) as postgres, started_pool(postgres) as pool:
        yield PostgresServers(postgres, pool)


def free_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield an empty folder of the user that the servers run as; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory(prefix="evalmeta-postgres-", ignore_cleanup_errors=True) as name:
        os.chown(name, *_ids())
        yield Path(name)


def _ids() -> tuple[int, int]:
    """Return the user and group of the servers: Postgres refuses to run as root."""
    if os.geteuid():
        return os.geteuid(), os.getegid()
    import pwd

    user = pwd.getpwnam("postgres" if _has_user("postgres") else "nobody")
    return user.pw_uid, user.pw_gid


def _has_user(name: str) -> bool:
    import pwd

    return any(user.pw_name == name for user in pwd.getpwall())


def _unprivileged() -> dict[str, object]:
    """Return options of Popen that change the user if this process is root's."""
    if os.geteuid():
        return {}
    user, group = _ids()
    return {"user": user, "group": group, "extra_groups": []}
