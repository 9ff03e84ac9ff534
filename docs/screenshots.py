"""Draws the pages of the viewer over a made-up project as docs/screenshots/*.webp.

    python docs/screenshots.py

It needs Chromium in /usr/bin. Each page is drawn 1280 pixels wide, light and dark, and 400 pixels wide.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent / "screenshots"
SAMPLES = Path(__file__).parents[1] / "metadata-samples"
SETTINGS = '[subjects.Order_Desk]\nadapter = "python"\ntarget = "order_desk:answer"\n'
AGENT = """
import os, random, time

rate, numbers = float(os.environ["RATE"]), random.Random(int(os.environ["SEED"]))


def answer(utterance):
    time.sleep(0.01 + 0.03 * numbers.random())
    number = next((word.strip("?.") for word in utterance.split() if word.strip("?.").isdigit()), "0")
    find = {"name": "Find_Order", "input": {"id": number}, "output": {"state": "sent"}, "latency_ms": 12.0}
    tokens = {"input": 180 + len(utterance), "output": 42}
    if "refund" in utterance.lower():
        refund = {"name": "Start_Refund", "input": {"order": number}, "output": {"amount": 25.5}, "latency_ms": 31.0}
        text = "I have refunded 25.50 EUR." if numbers.random() < rate else "I cannot refund this order."
        return {"topic": "Refunds", "actions": [find, refund], "outcome": text, "tokens": tokens}
    day = "Friday" if numbers.random() < rate else "Saturday"
    return {"topic": "Orders", "actions": [find], "outcome": f"Order {number} arrives on {day}.", "tokens": tokens}
"""
HEAD = "subjectType: AGENT\nsubjectName: Order_Desk\ntestCases:\n"
ORDERS = HEAD + "".join(
    f"  - utterance: Where is order {number}?\n    expectedTopic: Orders\n    expectedActions: [Find_Order]\n"
    f"    expectedOutcome: Order {number} arrives on Friday.\n"
    for number in range(10, 18)
)
REFUNDS = HEAD + "".join(
    f"  - utterance: I want a refund for order {number}.\n    expectedTopic: Refunds\n"
    f"    expectedActions: [Find_Order, Start_Refund]\n    expectedOutcome: I have refunded 25.50 EUR.\n"
    for number in range(20, 24)
)
RATES = (0.95, 1.0, 0.95, 1.0, 0.6)
HEIGHTS = (400, 1000)


def main() -> None:
    """Make the project, run its tests, and draw all pages."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        project = Path(made) / "order-desk"
        (project / "tests").mkdir(parents=True)
        for name, text in {"evalmeta.toml": SETTINGS, "order_desk.py": AGENT}.items():
            (project / name).write_text(text)
        (project / "tests" / "orders.yaml").write_text(f"name: Orders\n{ORDERS}")
        (project / "tests" / "refunds.yaml").write_text(f"name: Refunds\n{REFUNDS}")
        shutil.copytree(SAMPLES / "aiEvaluationDefinitions", project / "aiEvaluationDefinitions")
        (project / ".git").mkdir()
        (project / ".git" / "HEAD").write_text("ref: refs/heads/faster-refunds\n")
        subprocess.run([sys.executable, "-m", "evalmeta", "deploy"], cwd=project, check=True, capture_output=True)
        for seed, rate in enumerate(RATES):
            environment = {**os.environ, "RATE": str(rate), "SEED": str(seed)}
            command = [sys.executable, "-m", "evalmeta", "run", "tests", "-q", "--concurrency", "1"]
            subprocess.run(command, cwd=project, env=environment, check=False, capture_output=True)
        viewer = [sys.executable, "-m", "evalmeta", "view", "--port", "0", "--no-open"]
        with subprocess.Popen(viewer, cwd=project, stdout=subprocess.PIPE, text=True) as server:
            draw(*((server.stdout or sys.stdin).readline().split()[1] for _ in range(2)))
            server.send_signal(signal.SIGINT)


def draw(root: str, code: str) -> None:
    """Log in by a code, and draw each page in three ways."""
    run = "4KB000000000009GAA"
    pages = {
        "tests": "",
        "runs": "/runs",
        "run": f"/runs/{run}",
        "suite": "",
        "case": f"/runs/{run}/cases/4",
        "compare": f"/compare?after={run}",
        "trends": "/trends?test=tests/orders.yaml",
        "org": "/org",
        "job": "/org/jobs/0Af000000000001CAA",
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        login = browser.new_page()
        login.goto(root)
        login.get_by_label("Code").fill(code)
        login.get_by_role("button", name="Log in").click()
        login.get_by_role("navigation").wait_for()
        session = login.context.storage_state()
        for width, scheme, ending in ((1280, "light", "light"), (1280, "dark", "dark"), (400, "light", "narrow")):
            size = {"width": width, "height": 800}
            context = browser.new_context(viewport=size, color_scheme=scheme, storage_state=session)
            page = context.new_page()
            camera = context.new_cdp_session(page)
            for name, path in pages.items():
                page.set_viewport_size({"width": width, "height": HEIGHTS[0]})
                if name == "suite":
                    page.get_by_role("link", name="All runs of this command").click()
                else:
                    page.goto(root + path)
                page.wait_for_timeout(300)
                height = min(HEIGHTS[1], page.evaluate("document.documentElement.scrollHeight"))
                page.set_viewport_size({"width": width, "height": height})
                drawn = camera.send("Page.captureScreenshot", {"format": "webp", "quality": 70})
                (FOLDER / f"{name}-{ending}.webp").write_bytes(base64.b64decode(drawn["data"]))
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
