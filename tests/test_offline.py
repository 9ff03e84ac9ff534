"""Commands that need no network open no connection, and write only in the project and in evalmeta's own folders."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conftest import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

# Audit hooks see what Python opens; libxml2 and SQLite open files on their own, and only those that Python names.
SCRIPT = """\
import json, os, sys
seen = []

def watch(event, arguments):
    if event in {"socket.connect", "socket.bind", "socket.getaddrinfo"}:
        seen.append([event, repr(arguments[1:])])
    elif event == "open" and arguments[2] is not None and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        if isinstance(arguments[0], str):
            seen.append(["write", os.path.abspath(arguments[0])])
    elif event in {"os.mkdir", "os.rename", "os.remove", "sqlite3.connect"}:
        seen.append([event, os.path.abspath(os.fsdecode(arguments[0]))])

sys.addaudithook(watch)
from evalmeta.cli.main import main
try:
    main(sys.argv[2:])
finally:
    with open(sys.argv[1], "w") as file:
        json.dump([each for each in seen if each[1] != os.path.abspath(sys.argv[1])], file)
"""
COMMANDS = [
    ("validate",),
    ("status",),
    ("deploy",),
    ("test", "run", "--wait"),
    ("test", "history"),
    ("test", "results", "--job-id", "latest", "--result-format", "html"),
    ("retrieve", "--manifest", "package.xml"),
    ("diff",),
    ("package", "build", "--output-file", "out.zip"),
    ("rule",),
    ("doctor",),
    ("view", "--export", "pages"),
]


@pytest.mark.slow
def test_offline_commands_open_no_connection_and_write_only_in_the_project(tmp_path: Path) -> None:
    project, home, temp = tmp_path / "project", tmp_path / "home", tmp_path / "temp"
    shutil.copytree(SAMPLES, project, ignore=shutil.ignore_patterns(".evalmeta", "__pycache__"))
    home.mkdir()
    temp.mkdir()
    allowed = tuple(map(str, (project, home, temp, "/dev/")))
    environment = {"HOME": str(home), "TMPDIR": str(temp), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    for words in COMMANDS:
        log = tmp_path / "seen.json"
        command = [sys.executable, "-c", SCRIPT, str(log), *words]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        seen = json.loads(log.read_text())
        written = [each for each in seen if not each[0].startswith("socket")]
        assert [each for each in seen if each not in written] == [], words
        assert [each for each in written if not each[1].startswith(allowed)] == [], words
