def answer(prompt):
    question = prompt.partition("Answer briefly: ")[2]
    if "JSON" in question:
        return '{"id": 10045, "state": "sent"}'
    if "order" in question:
        return {"outcome": "It is on its way.", "actions": [{"name": "find_order", "input": {"id": 10045}}]}
    return "We open at 9 on Monday."
