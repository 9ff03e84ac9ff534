from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import report_runs as make
from evalmeta.errors import SettingsError
from evalmeta.report import FORMATS, file_name, format_names, render

SUFFIXES = {
    "human": "txt",
    "json": "json",
    "jsonl": "jsonl",
    "junit": "xml",
    "tap": "tap",
    "ctrf": "ctrf.json",
    "csv": "csv",
    "markdown": "md",
    "html": "html",
    "github": "github.txt",
    "otlp": "otlp.jsonl",
}


def test_the_formats_of_sf_are_there() -> None:
    assert {"human", "json", "junit", "tap"} <= {*format_names()}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_rendered_by_its_function(name: str) -> None:
    function = getattr(import_module(FORMATS[name].module), FORMATS[name].function)
    assert render(name, [make.mixed()]) == "".join(function([make.mixed()]))
    assert render(name, [make.mixed()]).endswith("\n")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_named_as_sf_names_it(name: str) -> None:
    assert file_name(name, "4KB000000000001GAA") == f"test-result-4KB000000000001GAA.{SUFFIXES[name]}"


def test_a_run_id_cannot_name_another_folder() -> None:
    assert file_name("json", "../../x\x00") == "test-result-______x_.json"


def test_an_unknown_format_is_a_usage_error_that_lists_the_formats() -> None:
    with pytest.raises(SettingsError, match="there are no reporters called 'jsom'") as caught:
        render("jsom", [])
    assert "Did you mean 'json'? Known:" in caught.value.actions[0]
    with pytest.raises(SettingsError, match="there are no reporters called 'jsom'"):
        file_name("jsom", "1")


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_loads_rich_or_lxml(name: str) -> None:
    loaded = "{'rich', 'lxml'} & {*sys.modules}"
    code = f"import sys; from evalmeta.report import render; render({name!r}, []); print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "set()\n"
