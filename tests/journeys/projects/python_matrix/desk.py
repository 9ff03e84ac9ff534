def answer(question):
    return {"outcome": "It is on its way.", "actions": ["find_order"]}


def new_answer(question):
    return {"outcome": "Your order is on its way.", "actions": ["find_order"]}
