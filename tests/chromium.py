"""Chromium for tests with the marker `browser`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from clients_elsewhere.node import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def clean_page(
    browser: Browser, origin: str, *, width: int = 1280, dark: bool = False, script: bool = True
) -> Iterator[Page]:
    """Yield a page that must log no error and may only call this origin."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        permissions=["clipboard-read", "clipboard-write"] if origin.startswith("http") else [],
    )
    page, faults = context.new_page(), list[str]()
    page.on("console", lambda message: faults.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith((origin, "data:")) else faults.append(request.url)
    )
    yield page
    context.close()
    assert not faults, faults


def faults_of_access(page: Page) -> list[str]:
    """Return what axe-core finds on a page, with all its details open."""
    for details in page.locator("details").all():
        details.evaluate("each => { each.open = true; }")
    page.evaluate((CLIENTS / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    return [
        f"{page.url}: {fault['impact']} {fault['id']}: {node['html']}: {node['failureSummary']}"
        for fault in found["violations"]
        for node in fault["nodes"]
    ]
