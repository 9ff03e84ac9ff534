"""The program's entry point: `evalmeta`, and `python -m evalmeta`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType


def main() -> None:
    """Run the program; exit quietly on Ctrl-C, even while it is still loading."""
    # httpx also loads its command line, with rich and pygments, unless it cannot be imported: 40 % of loading httpx.
    sys.modules["httpx._main"] = cast("ModuleType", None)
    try:
        # Ctrl-C may come while modules are loading.
        from evalmeta.cli.signals import catch_signals, ignore_signals
        from evalmeta.engine.process import exits_refused, rare_collections

        catch_signals()
        exits_refused.begin()
        rare_collections.begin()
        from evalmeta.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        run()
    finally:
        ignore_signals()


if __name__ == "__main__":
    main()
