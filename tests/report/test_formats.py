from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import report_runs as make
from evalmeta.errors import UsageError
from evalmeta.report import FORMATS, file_name, formats, render


def test_the_formats_are_those_of_sf() -> None:
    assert formats() == ("human", "json", "junit", "tap")


@pytest.mark.parametrize("name", formats())
def test_a_format_is_written_by_its_module(name: str) -> None:
    module = import_module(FORMATS[name].module)
    assert render(name, [make.mixed()]) == module.render([make.mixed()])
    assert render(name, [make.mixed()]).endswith("\n")


@pytest.mark.parametrize(("name", "suffix"), [("human", "txt"), ("json", "json"), ("junit", "xml"), ("tap", "tap")])
def test_a_file_is_named_as_sf_names_it(name: str, suffix: str) -> None:
    assert file_name(name, "4KB000000000001GAA") == f"test-result-4KB000000000001GAA.{suffix}"


def test_a_run_id_cannot_lead_out_of_the_folder() -> None:
    assert file_name("json", "../../x\x00") == "test-result-______x_.json"


def test_an_unknown_format_is_a_usage_error_that_lists_the_known() -> None:
    with pytest.raises(UsageError, match="'pdf' is no result format") as caught:
        render("pdf", [])
    assert caught.value.actions == ("Choose one of human, json, junit, tap.",)


@pytest.mark.parametrize("name", formats())
def test_no_format_loads_rich_or_lxml(name: str) -> None:
    loaded = "{'rich', 'lxml'} & {*sys.modules}"
    code = f"import sys; from evalmeta.report import render; render({name!r}, []); print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"
