def answer(question):
    return {"outcome": "Order 10045 is on its way.", "actions": [{"name": "find_order", "input": {"id": 10045}}]}
