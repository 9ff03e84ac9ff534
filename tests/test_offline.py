"""Commands that need no network open no connection, and write only in the project and in evalmeta's own folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SAMPLES

# Every Python process imports it, so that workers and agents are watched too. Audit hooks see what Python opens;
# libxml2 and SQLite open files on their own, and only those that Python names.
WATCH = """\
import json, os, sys

log = os.open(os.environ["SEEN"], os.O_WRONLY | os.O_APPEND)

def watch(event, arguments):
    seen = None
    if event in {"socket.connect", "socket.bind", "socket.getaddrinfo"}:
        seen = ["network", f"{event} {arguments[1:]!r}"]
    elif event == "open" and arguments[2] is not None and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        if isinstance(arguments[0], str):
            seen = ["file", os.path.abspath(arguments[0])]
    elif event in {"os.mkdir", "os.rename", "os.remove", "sqlite3.connect"}:
        path = os.fsdecode(arguments[0])
        seen = ["file", os.path.abspath(path)]
    elif event == "subprocess.Popen":
        seen = ["program", os.path.basename(os.fsdecode(arguments[0] or arguments[1][0]))]
    if seen:
        os.write(log, json.dumps(seen).encode() + b"\\n")

sys.addaudithook(watch)
"""
COMMANDS = [
    ("validate",),
    ("format",),
    ("status",),
    ("deploy",),
    ("test", "run", "--wait"),
    ("test", "run"),
    ("test", "resume", "--job-id", "latest"),
    ("test", "history"),
    ("test", "results", "--job-id", "latest", "--result-format", "html"),
    ("retrieve", "--manifest", "package.xml"),
    ("diff",),
    ("package", "build", "--zip-file-name", "out.zip"),
    ("manifest", "generate", "--name", "all.xml"),
    ("convert", "source", "--root-dir", ".", "--output-dir", "converted"),
    ("rule",),
    ("doctor",),
    ("init", "new"),
    ("view", "--export", "pages"),
]


@pytest.mark.slow
def test_offline_commands_open_no_connection_and_write_only_in_the_project(tmp_path: Path) -> None:
    project, home, temp, watch = (tmp_path / name for name in ("project", "home", "temp", "watch"))
    shutil.copytree(SAMPLES, project, ignore=shutil.ignore_patterns(".evalmeta", "__pycache__"))
    for each in (home, temp, watch):
        each.mkdir()
    (watch / "sitecustomize.py").write_text(WATCH)
    log = tmp_path / "seen"
    allowed = tuple(map(str, (project, home, temp, "/dev/")))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(temp),
        "PYTHONPATH": str(watch),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SEEN": str(log),
    }
    programs = set()
    for words in COMMANDS:
        log.write_text("")
        command = [sys.executable, "-m", "evalmeta", *words]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode in {0, 100}, "Traceback" in done.stderr) == (True, False), (words, done.stderr)
        seen = [json.loads(line) for line in log.read_text().splitlines()]
        assert [what for kind, what in seen if kind == "network"] == [], words
        assert [what for kind, what in seen if kind == "file" and not what.startswith(allowed)] == [], words
        programs.update(what for kind, what in seen if kind == "program")
    assert any(program.startswith("python") for program in programs)
    assert programs <= {Path(sys.executable).name, "python3", "git"}, programs
