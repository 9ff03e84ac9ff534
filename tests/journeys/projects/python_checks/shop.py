"""Cases and checks in Python, as docs/library.md teaches."""

import evalmeta


def is_short(answer):
    return len(answer) < 50


def finds_the_order_once(actions, *, expected):
    looked_for = [action for action in actions if action["input"] == {"id": "10045"}]
    return evalmeta.Check(passed=len(looked_for) == 1, score=len(actions), reason=f"looked for before {expected!r}")


def answer(question):
    return {"outcome": "It is on its way.", "actions": [{"name": "find_order", "input": {"id": "10045"}}]}


cases = [
    {"input": "Where is 10045?", "equals": "It is on its way.", "checks": [finds_the_order_once]},
    {"input": "Has it been sent?", "not_contains": "I do not know", "actions": ["find_order"]},
]
finished = evalmeta.evaluate(cases, answer, checks=[is_short])
assert finished.succeeded, finished.report()
finished.save("report.xml")
