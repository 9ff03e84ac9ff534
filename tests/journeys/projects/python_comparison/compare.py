"""Two versions of an agent, compared in a notebook or in CI."""

import evalmeta


def agent(question):
    return {"outcome": "On its way.", "topic": "Orders"}


def new_agent(question):
    return {"outcome": "It is on its way.", "topic": "Orders"}


cases = [{"input": f"Where is order {number}?", "topic": "Orders"} for number in range(20)]
before, after = evalmeta.evaluate(cases, agent), evalmeta.evaluate(cases, new_agent)
comparison = after.compare(before)
assert not comparison.is_worse, str(comparison)
