"""`evalmeta store`: bring the store of the runs up to date, check it, and copy it to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.groups import FullHelpGroup
from evalmeta.cli.output import json_option, note, print_check, print_json
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED
from evalmeta.package.project import Project, find_project
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.store import Store
    from evalmeta.store.copying import TableContent

_CHECKSUM_CHARS = 16


@click.group(cls=FullHelpGroup)
def store() -> None:
    """Bring the store of the runs up to date, check it, or copy it to another.

    A store is named by a word: local is the state folder of the project, shared the database
    that EVALMETA_STORE or [store] of evalmeta.toml names. A path is another state folder, and
    postgresql://USER@HOST/DATABASE another database. A password belongs into the variable,
    PGPASSWORD or ~/.pgpass: other users can read command lines.
    """


def _project() -> Project:
    return find_project(Path.cwd(), or_folder=True)


def _store(word: str | None) -> Store:
    """Return the store that a word names, by default that of the project."""
    project = _project()
    return project.store if word is None else api.stores.find_store(project, word)


@store.command()
@click.argument("name", metavar="[STORE]", required=False)
@json_option
def migrate(*, name: str | None, as_json: bool) -> None:
    """Bring the layout of a store up to date.

    By default, it is the store that the project uses. No other program may use it meanwhile.

    \b
    evalmeta store migrate
    evalmeta store migrate postgresql://owner@db.example.com/team
    """
    done = api.stores.migrate_store(_store(name))
    if as_json:
        print_json({"store": done.store, "before": done.before, "after": done.after})
    elif done.before == done.after:
        click.echo(f"{done.store} is up to date: layout {done.after}.")
    else:
        click.echo(f"{done.store}: layout {done.before} is now layout {done.after}.")


@store.command()
@click.argument("name", metavar="[STORE]", required=False)
@json_option
def check(*, name: str | None, as_json: bool) -> int:
    """Check whether a store can be reached and used, and whether its rows are complete.

    By default, it is the store that the project uses. The exit code is 1 if there is an error.
    `evalmeta doctor` checks everything else.

    \b
    evalmeta store check
    evalmeta store check shared --json
    """
    checks = []
    for checked in api.stores.check_store(_store(name)):
        checks.append(checked)
        if not as_json:
            print_check(*checked)
    status = EXIT_FAILED if any(checked.status == "error" for checked in checks) else EXIT_PASSED
    if as_json:
        print_json({"checks": [checked._asdict() for checked in checks]}, status=status)
    return status


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy(*, source: str, target: str, as_json: bool) -> None:
    """Copy all of a store into an empty one.

    All tables are copied in one transaction and read back before it is committed: a copy that is
    interrupted leaves the target empty. The numbers and checksums of rows do not depend on the kind
    of the database. A target that has other rows is refused.

    \b
    evalmeta store copy local shared
    evalmeta store copy shared ./backup
    """
    project = _project()
    ends = [api.stores.find_store(project, word) for word in (source, target)]
    tables: list[TableContent] = []

    def show(table: TableContent) -> None:
        tables.append(table)
        if not as_json and table.rows:
            click.echo(f"{table.name:<14} {table.rows:>11,}  {table.checksum[:_CHECKSUM_CHARS]}")

    is_new = api.stores.copy_all(*ends, on_table=show)
    rows = sum(table.rows for table in tables)
    if as_json:
        result: JsonObject = {"copied": is_new, "rows": rows, "tables": [table._asdict() for table in tables]}
        print_json(result)
    elif is_new:
        note(f"Copied and verified {count(rows, 'row')}.")
    else:
        note(f"Nothing was copied: the target has the same {count(rows, 'row')} already.")
