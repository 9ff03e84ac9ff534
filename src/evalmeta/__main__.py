"""The program's entry point: `evalmeta`, and `python -m evalmeta`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program; exit quietly on Ctrl-C, even while it is still loading."""
    try:
        from evalmeta.cli.main import main as run  # noqa: PLC0415 - Ctrl-C may come while it loads
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
