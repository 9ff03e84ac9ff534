from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.bundle_content import join_files, split_files

FILES = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.binary(max_size=50))


@given(FILES)
def test_the_files_of_a_content_are_those_that_were_joined(files: dict[str, bytes]) -> None:
    assert split_files(join_files(files)) == files


@given(FILES)
def test_the_order_of_the_files_does_not_matter(files: dict[str, bytes]) -> None:
    assert join_files(dict(reversed(files.items()))) == join_files(files)


@given(FILES, FILES)
def test_other_files_are_another_content(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert (join_files(one) == join_files(other)) == (one == other)
