"""The program's entry point: `evalmeta`, and `python -m evalmeta`."""

from __future__ import annotations

import gc
import sys
from typing import Final

# Objects that are created before Python looks for cycles among them; its default is 700. Definitions have many objects
# and no cycles, so that the search takes a third of the time of reading them.
_OBJECTS: Final = 50_000


def main() -> None:
    """Run the program; exit quietly on Ctrl-C, even while it is still loading."""
    gc.set_threshold(_OBJECTS)
    try:
        from evalmeta.cli.signals import catch_signals, ignore_signals  # noqa: PLC0415 - Ctrl-C may come while it loads
        from evalmeta.engine.process_exit import refuse_exits  # noqa: PLC0415 - as below

        catch_signals()
        refuse_exits()
        from evalmeta.cli.main import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        run()
    finally:
        ignore_signals()


if __name__ == "__main__":
    main()
