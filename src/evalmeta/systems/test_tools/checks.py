"""The checks of one test case, gathered as the keys of test specs.

Other tools may make several checks of one kind. A key that cannot hold all of them keeps the first, and the other is
one that evalmeta does not judge.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.model.checks import Pattern, PatternSyntax
from evalmeta.model.expected_values import literal_value

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


_TEXT_CHECKS: Final = ("contains", "contains_any", "not_contains", "equals", "starts_with", "ends_with")


class CaseChecks:
    """Checks that are added one by one; each method returns whether evalmeta can make the check."""

    def __init__(self) -> None:
        self._keys: dict[str, list[JsonValue]] = {}
        self._actions: list[JsonValue] | None = None
        self._mode = ""
        self._ignores_case = False
        self._unjudged: list[str] = []
        self.left_out: list[str] = []

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Return the checks that evalmeta cannot make, each once."""
        return tuple(dict.fromkeys(self._unjudged))

    def lose(self, check: str) -> None:
        """Note a check that evalmeta cannot make."""
        self._unjudged.append(check)

    def is_expected(self, value: JsonValue) -> bool:
        """Return whether the whole answer must be this value, or one like it."""
        return value in self._keys.get("equals", ()) or value in self._keys.get("expectedOutcome", ())

    def add(self, key: str, value: JsonValue) -> bool:
        """Add a value to a key that takes several."""
        if value not in (known := self._keys.setdefault(key, [])):
            known.append(value)
        return True

    def put(self, key: str, value: JsonValue) -> bool:
        """Set a key that takes one value."""
        return self._keys.setdefault(key, [value]) == [value]

    def equal(self, value: JsonValue) -> bool:
        """Expect a whole answer: a text, or another value for an answer in JSON."""
        if isinstance(value, str | list | dict):
            return self.put("equals", value)
        return self.add("json", {"path": "$", "equals": value}) if value is not None else False

    def contain(self, texts: list[str], *, ignores_case: bool = False) -> bool:
        """Expect all texts in the answer."""
        if not texts or not all(texts):
            return False
        if ignores_case:
            return all(self.match(f"(?i){re.escape(text)}") for text in texts)
        return all(self.add("contains", text) for text in texts)

    def contain_any(self, texts: list[str], *, ignores_case: bool = False) -> bool:
        """Expect one of the texts in the answer."""
        if not texts or not all(texts):
            return False
        if ignores_case:
            return self.match(f"(?i)(?:{'|'.join(map(re.escape, texts))})")
        if "contains_any" in self._keys:
            return False
        self._keys["contains_any"] = [*dict.fromkeys(texts)]
        return True

    def not_contain(self, texts: list[str], *, ignores_case: bool = False) -> bool:
        """Expect none of the texts in the answer; all such checks of a case treat upper and lower case alike."""
        if not texts or not all(texts) or ("not_contains" in self._keys and self._ignores_case is not ignores_case):
            return False
        self._ignores_case = ignores_case
        return all(self.add("not_contains", text) for text in texts)

    def match(self, pattern: str) -> bool:
        """Expect that a regular expression matches a part of the answer."""
        try:
            return not Pattern(pattern).accepts_everything and self.add("matches", pattern)
        except PatternSyntax:
            return False

    def limit(self, key: str, most: int) -> bool:
        """Expect at most so many; the lowest of several limits counts."""
        known = [value for value in self._keys.get(key, ()) if isinstance(value, int)]
        self._keys[key] = [min(most, *known)] if known else [most]
        return True

    def call(self, calls: JsonValue, mode: str) -> bool:
        """Expect actions, which are names, or names with inputs; several checks can be joined if extra ones may be."""
        if not isinstance(calls, list) or not all(map(_is_call, calls)):
            return False
        if self._actions is not None and not (mode == self._mode == "superset"):
            return False
        known = self._actions or []
        self._actions = [*known, *(call for call in map(_literal, calls) if call not in known)]
        self._mode = mode
        return True

    def keys(self) -> JsonObject:
        """Return the keys of the test case."""
        keys: dict[str, JsonValue] = {}
        if self._actions is not None:
            keys |= {"actions": self._actions, **({"action_match": self._mode} if self._mode != "exact" else {})}
        for key, values in self._keys.items():
            is_list = key in {"not_actions", "contains_any"} or len(values) > 1
            keys[key] = list(values) if is_list else values[0]
        # Other tools compare texts character by character; without `exact`, not_contains ignores upper and lower case.
        texts = (value for key in _TEXT_CHECKS for value in self._keys.get(key, ()))
        if any(isinstance(text, str) for text in texts) and not self._ignores_case:
            keys["exact"] = True
        return keys


def _is_call(call: JsonValue) -> bool:
    return bool(call.get("name")) and isinstance(call.get("name"), str) if isinstance(call, dict) else bool(call)


def _literal(call: JsonValue) -> JsonValue:
    if not isinstance(call, dict) or not isinstance(arguments := call.get("input"), dict):
        return call
    return {**call, "input": literal_value(arguments)} if arguments or call.get("exact") else call["name"]
