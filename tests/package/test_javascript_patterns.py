from __future__ import annotations

import pytest

from evalmeta.package.javascript_patterns import compile_glob, compile_regex, replace_matches


def replaced(regex: str, template: str, text: str) -> str:
    return replace_matches(compile_regex(regex), template, text)


@pytest.mark.parametrize(
    ("regex", "text", "result"),
    [
        ("{{AGENT}}", "a {{AGENT}} b", "a X b"),
        ("a{,2}", "aa a{,2}", "aa X"),
        (r"\d+", "1 ٣", "X ٣"),
        (r"\w", "é_", "éX"),
        (r"\s", "a\ufeffb\x1fc", "aXb\x1fc"),
        (r"a[\s\S]b", "a\nb", "X"),
        (r"[^\S]", "a b", "aXb"),
        ("a.b", "a\nb a\u2028b a-b", "a\nb a\u2028b X"),
        ("b$", "b\nb\n", "b\nb\n"),
        ("[^]", "\n", "X"),
        ("[]", "a", "a"),
        ("[[&|~]", "[&|~", "XXXX"),
        (r"\-\_\/\q", "-_/q", "X"),
        (r"\0", "a\0", "aX"),
        (r"[\0\-]", "\0-", "XX"),
        (r"(b)?a\1", "a", "X"),
        (r"(?<n>b)?a\k<n>", "ba bab", "bX X"),
        (r"\bAGENT\b", "AGENT AGENTS", "X AGENTS"),
        ("(?<=a)b(?!c)", "ab abc b", "aX abc b"),
        ("|a", "ab", "XaXbX"),
    ],
)
def test_a_regular_expression_matches_as_in_javascript(regex: str, text: str, result: str) -> None:
    assert replaced(regex, "X", text) == result


@pytest.mark.parametrize("regex", ["(?i)a", "(?P<a>b)", "(?>a)", "a++", "[a", "(a", "(?<=a+)b", r"\1"])
def test_a_regular_expression_that_python_would_match_otherwise_is_refused(regex: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compile_regex(regex)


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("$$", "<$>"),
        ("$&$&", "<abab>"),
        ("$`|$'", "<<|>>"),
        ("$1$2", "<ab>"),
        ("$3$10$01", "<$3a0a>"),
        ("$<n>", "<b>"),
        ("$<m>", "<>"),
        ("cost: $", "<cost: $>"),
    ],
)
def test_signs_in_a_value_stand_for_parts_of_the_text(template: str, result: str) -> None:
    assert replaced("(a)(?<n>b)", template, "<ab>") == result


def test_without_groups_a_value_may_name_groups() -> None:
    assert replaced("ab", "$1 $<n>", "ab") == "$1 $<n>"


def test_a_group_that_took_no_part_is_empty() -> None:
    assert replaced("a|(b)", "$1.", "ab") == ".b."


@pytest.mark.parametrize(
    "glob",
    [
        "x.xml",
        "*.xml",
        "**",
        "force-app/**",
        "force-app/**/*.xml",
        "/force-app/**/x.xml",
        "force-app/*/default/x.xml",
        "force-app/{main,test}/**/[a-x].xml",
        "{a,{b,force-app}}/**/?.xml",
        "default/[!y].xml",
        r"default/\x.xml",
    ],
)
def test_a_glob_matches_the_end_of_a_path(glob: str) -> None:
    assert compile_glob(glob).match("/work/force-app/main/default/x.xml")


@pytest.mark.parametrize(
    "glob",
    ["y.xml", "main/*.xml", "force-app/*/x.xml", "force-app/**/", "{main,test}", "[!x].xml", "x.xml/**", "orce-app/**"],
)
def test_a_glob_matches_whole_names(glob: str) -> None:
    assert compile_glob(glob).match("/work/force-app/main/default/x.xml") is None


def test_wildcards_of_globs_match_no_hidden_names() -> None:
    assert compile_glob("**/*.xml").match("/work/.hidden/x.xml") is None
    assert compile_glob("*.xml").match("/work/.x.xml") is None
    assert compile_glob(".*").match("/work/.x.xml")


@pytest.mark.parametrize("glob", ["@(a|b)", "!(a)", "[[:alpha:]]", "{1..3}", "./a", "a/../b", "[]", "[b-a]"])
def test_a_glob_that_is_not_supported_is_refused(glob: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compile_glob(glob)
