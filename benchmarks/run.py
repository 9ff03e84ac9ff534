"""Prints every ratio, each measured in one run."""

from __future__ import annotations

import platform
import sys

import deploy
import engine
import package
import rouge
import startup
import validate
import worst


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    print(f"{'ratio':>7}  {'seconds':>8}  {'floor':>8}  what / floor")
    measures = (
        startup.measure_version,
        startup.measure_validate,
        startup.measure_validate_dx,
        startup.measure_validate_plain,
        validate.measure_one_core,
        validate.measure_all_cores,
        worst.measure_definitions,
        worst.measure_manifests,
        package.measure,
        *((engine.measure_peer,) if engine.is_possible() else ()),
        engine.measure_slow,
        engine.measure_memory,
        rouge.measure,
        *((deploy.measure_one, deploy.measure_many) if deploy.is_possible() else ()),
    )
    for measure in measures:
        name, pair = measure()
        print(f"{pair.ratio:7.2f}  {pair.ours:8.3f}  {pair.floor:8.3f}  {name}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
