from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.scorers.judged import JudgedPart, read_parts, write_parts

PARTS = st.builds(JudgedPart, st.sampled_from(["yes", "no"]), st.text(), st.text(max_size=200))


def plain(text: str) -> str:
    return " ".join(text.split())


@given(st.lists(PARTS), st.sampled_from(["", " (1 of 3 passages have no content)"]))
def test_written_parts_can_be_read(parts: list[JudgedPart], remark: str) -> None:
    cleaned = [JudgedPart(part.label, plain(part.name).replace(": ", ":"), plain(part.rationale)) for part in parts]
    assert read_parts(write_parts(parts, remark=remark)) == tuple(cleaned)


def test_the_first_line_counts() -> None:
    parts = [JudgedPart("yes", "a.md", "It fits."), JudgedPart("no", "b.md", "About\nfish.")]
    assert write_parts(parts, remark=" (so far)") == "1 of 2 (so far)\n1. yes, a.md: It fits.\n2. no, b.md: About fish."


@pytest.mark.parametrize("text", ["", "2 of 2 samples: fine", "It fits.\nReally: yes, it does."])
def test_another_explanation_has_no_parts(text: str) -> None:
    assert read_parts(text) == ()
