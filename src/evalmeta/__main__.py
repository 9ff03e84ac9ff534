"""The program's entry: `evalmeta`, and `python -m evalmeta`."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the program; Ctrl-C ends it quietly even while it is still loading."""
    try:
        from evalmeta.cli.main import main as run  # noqa: PLC0415 - loading is what may be interrupted
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
