"""`python -m evalmeta` is the `evalmeta` command."""

from __future__ import annotations

from evalmeta.cli.main import main

if __name__ == "__main__":
    main()
