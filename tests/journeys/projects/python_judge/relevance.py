"""A judge in a check, and criteria in words, as docs/judge.md teaches."""

import evalmeta


async def is_relevant(answer, *, utterance):
    return await evalmeta.judge(utterance, answer, "The answer is relevant to the question.")


def answer(question):
    return "It is on its way."


finished = evalmeta.evaluate(
    [{"input": "Where is order 10045?", "rubric": ["The answer says where the order is.", "The answer is polite."]}],
    answer,
    checks=[is_relevant],
)
assert finished.succeeded, finished.report()
