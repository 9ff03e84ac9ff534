"""Draws the pages of the viewer over the project `shop` of tests/viewer/three_projects.py as docs/screenshots/*.webp.

    python docs/screenshots.py

It needs Chromium in /usr/bin. Each page is drawn 1280 pixels wide, light and dark, and 400 pixels wide.
"""

from __future__ import annotations

import base64
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "screenshots"
SAMPLES = ROOT / "metadata-samples"
HEIGHTS = (400, 1000)


def main() -> None:
    """Build the project with its runs, and draw all pages."""
    sys.path.insert(0, str(ROOT / "tests"))
    from viewer.three_projects import SHOP
    from viewer.twelve_days import build_project

    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        project = Path(made) / SHOP.name
        build_project(SHOP, project)
        shutil.copytree(SAMPLES / "aiEvaluationDefinitions", project / "aiEvaluationDefinitions")
        subprocess.run([sys.executable, "-m", "evalmeta", "deploy"], cwd=project, check=True, capture_output=True)
        viewer = [sys.executable, "-m", "evalmeta", "view", "--port", "0", "--no-open"]
        with subprocess.Popen(viewer, cwd=project, stdout=subprocess.PIPE, text=True) as server:
            draw(*((server.stdout or sys.stdin).readline().split()[1] for _ in range(2)))
            server.send_signal(signal.SIGINT)


def draw(root: str, code: str) -> None:
    """Log in by a code, and draw each page in three ways."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        login = browser.new_page()
        login.goto(root)
        login.get_by_label("Code").fill(code)
        login.get_by_role("button", name="Log in").click()
        login.get_by_role("navigation").wait_for()
        case = urljoin(root, login.locator(".cause").first.get_by_role("link").first.get_attribute("href"))
        run = case.partition("/cases/")[0]
        pages = {
            "changes": root,
            "tests": f"{root}/tests",
            "runs": f"{root}/runs",
            "run": run,
            "suite": "",
            "case": case,
            "compare": f"{root}/compare?after={run.rpartition('/')[2]}",
            "trends": f"{root}/trends?test=tests/orders.yaml",
            "org": f"{root}/org",
            "job": f"{root}/org/jobs/0Af000000000001CAA",
        }
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
                    page.goto(path)
                page.wait_for_timeout(300)
                height = min(HEIGHTS[1], page.evaluate("document.documentElement.scrollHeight"))
                page.set_viewport_size({"width": width, "height": height})
                drawn = camera.send("Page.captureScreenshot", {"format": "webp", "quality": 70})
                (FOLDER / f"{name}-{ending}.webp").write_bytes(base64.b64decode(drawn["data"]))
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
