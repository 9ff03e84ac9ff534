from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import evalmeta.plugins
from evalmeta.api.discovery import kind_in_folder
from evalmeta.api.specs import convert_file
from evalmeta.errors import FormatError, SettingsError, UsageError
from evalmeta.formats import discovery, likeness, registry
from evalmeta.formats.document import Reading
from evalmeta.formats.files import digest_of, format_of, kind_of_file, read_document
from evalmeta.formats.registry import recognise, written_formats
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xef\xbb\xbf\n <?xml version='1.0'?>", "definition"),
        ("<a/>".encode("utf-16"), "definition"),
        (b"\xef\xbb\xbfUtterance;Expected Topic\n", "csv"),
        (b"name: Utterance\n", "testspec"),
        (b'{"name": "x", "testCases": []}', "testspec"),
        (b"{name: x}", "testspec"),
        (b"", "testspec"),
        (b'{"evalSetId": "x", "evalCases": []}', "adk"),
        (b'{"eval_set_id": "x", "eval_cases": [', "adk"),
        (b'[{"query": "x"}]', "adk"),
        (b'[{"name": "x", "data": []}]', "adk"),
        (b'{"threads": []}', "ballerina"),
        (b'{"confidence": 0.8, "entries": []}', "ballerina"),
        (b'[{"input": "x", "expectedTools": []}]', "ballerina"),
        (b'[[{"input": "x"}]]', "ballerina"),
        (b'[{"request": "x"}]', "databricks"),
        (b'{"request": "x"}\n{"request": "y"}\n', "databricks"),
        (b'{"request_id": "1", "request": "x"}\n{"request": ', "databricks"),
        (b"request,response\nx,y\n", "databricks"),
        (b"PAR1\x15\x04", "databricks"),
        (b'{"name": "x"}', None),
        (b"[]", None),
        (b"[1, 2]", None),
        (b'{"query": "x"}\n{"evalCases": []}\n', "databricks"),
        (b'{"evalCases": []}\n{"evalCases": []}\n', "adk"),
        (b'[{"input": "x"}]\n,', "ballerina"),
        ('{"evalCases": []}'.encode("utf-16"), "adk"),
        ("\ufeffrequest,response\n".encode("utf-16-be"), "databricks"),
    ],
)
def test_a_format_is_told_by_the_content(data: bytes, found: str | None) -> None:
    assert recognise(data) == found


QUIZ = """
from evalmeta.formats.diagnostics import Loss, Written
from evalmeta.formats.document import Document
from evalmeta.formats.registry import Format
from evalmeta.model.evaluation import Case, Evaluation, Turn


class Quiz(Format):
    name = "quiz"
    description = "a quiz of Acme"
    endings = (".quiz.yaml",)
    keys = ("quiz",)
    item_keys = ("ask",)
    columns = ("ask",)
    other_files = (("it has the results of a quiz", ("winner",)),)
    settings_file = "quiz.json"
    is_written = True

    def read(self, path, *, label, name, reading):
        return Document(Evaluation(name, "", (Case(1, (Turn(path.read_text().strip()),)),)))

    def write(self, definition):
        return Written(definition.name.encode(), (Loss("definition", "its test cases"),))


QUIZ = Quiz()
"""
CACHES = (
    *(evalmeta.plugins._found, evalmeta.plugins._may_declare),  # noqa: SLF001 - what is installed does not change otherwise
    *(registry.all_formats, registry._names_by_key, discovery._programs),  # noqa: SLF001 - likewise
    *(likeness._known, likeness._by_cut, likeness._keys_of_formats, likeness.meant_key),  # noqa: SLF001 - likewise
)


@pytest.fixture
def adding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs a package with a format, made of a source."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)

    def add(source: str = QUIZ, entry: str = "quiz = acme:QUIZ") -> None:
        install(tmp_path, "formats", entry, source)
        forget()

    def forget() -> None:
        for cache in CACHES:
            cache.cache_clear()

    yield add
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"quiz": []}'),
        ("a.json", '{"title": "x", "quiz": ['),
        ("a.json", '[{"ask": "x"}]'),
        ("a.jsonl", '{"quiz": 1}\n{"quiz": 2}\n'),
        ("a.csv", "ask,hear\nx,y\n"),
        ("a.quiz.yaml", "Where?"),
    ],
)
def test_a_file_of_a_package_s_format_is_a_test_and_is_read(
    adding: Callable[..., None], tmp_path: Path, name: str, content: str
) -> None:
    adding()
    file = tmp_path / name
    file.write_text(content)
    kind = kind_of_file(file)
    assert kind is not None
    assert (kind.format, kind.is_test) == ("quiz", True)
    [case] = read_document(file, label=name, name="a").evaluation.cases
    assert case.turns[0].utterance == content.strip()


def test_a_package_s_format_can_be_written(adding: Callable[..., None], tmp_path: Path) -> None:
    assert written_formats() == ["definition", "testspec", "csv", "adk", "databricks", "run-eval"]
    adding()
    assert written_formats() == ["definition", "testspec", "csv", "adk", "databricks", "quiz", "run-eval"]
    table = tmp_path / "Orders.csv"
    table.write_text("Utterance,Expected Topic\nWhere?,Orders\n")
    written = convert_file(table, "quiz")
    assert written.content == b"Orders"
    assert [str(loss.what) for loss in written.losses] == ["its test cases"]
    with pytest.raises(UsageError, match="'quizz' is not a format that evalmeta writes"):
        convert_file(table, "quizz")


def test_a_package_s_format_says_which_files_are_not_tests(adding: Callable[..., None], tmp_path: Path) -> None:
    adding()
    results = tmp_path / "results.json"
    results.write_text('{"winner": "Ada"}')
    kind = kind_of_file(results)
    assert kind is not None
    assert kind.why_not == "it has the results of a quiz"
    with pytest.raises(FormatError) as caught:
        format_of(results, label="results.json")
    assert "a quiz of Acme" in str(caught.value.actions[-1])


def test_a_file_of_a_package_s_format_changes_with_the_settings_beside_it(
    adding: Callable[..., None], tmp_path: Path
) -> None:
    adding()
    file = tmp_path / "a.json"
    file.write_text('{"quiz": []}')
    before = digest_of(file, Reading())
    (tmp_path / "quiz.json").write_text("{}")
    assert digest_of(file, Reading()) != before
    assert kind_in_folder(tmp_path / "quiz.json") is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("QUIZ = 1", "'quiz' of the entry points evalmeta.formats is int, not a format"),
        (QUIZ.replace('"quiz"\n', '"riddle"\n', 1), "'quiz' of the entry points evalmeta.formats is called 'riddle'"),
    ],
)
def test_an_object_that_is_not_a_format_is_reported(
    adding: Callable[..., None], tmp_path: Path, source: str, words: str
) -> None:
    adding(source)
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(SettingsError, match=words):
        format_of(tmp_path / "a.json", label="a.json")


def test_an_error_of_a_package_s_reader_is_one_of_the_file(adding: Callable[..., None], tmp_path: Path) -> None:
    adding(QUIZ.replace("return Document", "return [][0] or Document"))
    (tmp_path / "a.json").write_text('{"quiz": []}')
    with pytest.raises(FormatError, match=r"a\.json cannot be read as quiz: IndexError: list index out of range"):
        read_document(tmp_path / "a.json", label="a.json", name="a")


def test_packages_do_not_replace_formats_of_evalmeta(adding: Callable[..., None]) -> None:
    adding(QUIZ, "adk = acme:QUIZ")
    assert recognise(b'{"evalCases": []}') == "adk"
    assert registry.all_formats()["adk"].description.startswith("an eval set of ADK")
