from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.raters.llm.model_server import judgement, ruling, saying, serving

PAGE = (Path(__file__).parents[2] / "docs/judge.md").read_text()
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE))
PRICES = "".join(re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
COMMANDS = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
MORE = "testCases:\n- input: Where is order 10045?\n  function: checks:is_relevant\nsubject: agent:answer\n"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_files_of_the_page_pass_with_a_judge_that_is_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    (tmp_path / "agent.py").write_text('def answer(question):\n    return "It is on its way."\n')
    (tmp_path / "more.yaml").write_text(MORE)

    def reply(request: bytes) -> bytes:
        is_rating = b"contradictions" in request
        return saying(json.dumps(judgement(4) if is_rating else ruling("yes", "yes", "yes")))

    with serving(reply) as server:
        for name, text in FILES.items():
            (tmp_path / name).write_text(text.replace("https://api.openai.com/v1", server.url))
        assert "1 passed" in run(tmp_path, "evalmeta", "run", "orders.yaml")
        assert "100 % (2 of 2)" in run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider")
        assert "1 passed" in run(tmp_path, "evalmeta", "run", "more.yaml")
        with (tmp_path / "evalmeta.toml").open("a") as settings:
            settings.write(f"\n{PRICES}")
        for command in COMMANDS[:2]:
            assert "cost of the rater (gpt-4.1-mini): $" in run(tmp_path, *command.split())
        # The run was not cut, so that there is nothing to resume.
        assert "orders.yaml" in run(tmp_path, *COMMANDS[2].split())
    assert server.bodies
