"""Labelled pairs: what was expected, what came, whether it is right, and which rule must fire if one must."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = ["PAIRS", "Pair"]

Rule = Literal["", "numbers", "names", "refusal", "same"]


class Pair(NamedTuple):
    expected: str
    actual: str
    right: bool
    rule: Rule = ""
    utterance: str = ""


PAIRS: Final = (
    # the same thing, perhaps with more around it
    Pair("Your order was shipped.", "Your order was shipped.", True, "same"),
    Pair("Your order was shipped.", "your order was shipped", True, "same"),
    Pair("The order ships on Tuesday.", "Good news: the order ships on Tuesday.", True),
    Pair("Your password has been reset.", "Done! Your password has been reset.", True),
    Pair("The store opens at 9 am.", "The store opens at 9:00 AM.", True),
    Pair("Refunds take 5 business days.", "Refunds take five business days.", True),
    Pair("The total is $1,250.00.", "The total is 1250 dollars.", True),
    Pair("Your balance is 2,000 points.", "Your balance is 2k points.", True),
    Pair("The warranty lasts 24 months.", "The warranty lasts 24 months from the day of purchase.", True),
    Pair("The meeting is on March 5, 2024.", "The meeting is on 2024-03-05.", True),
    Pair("Case 00001026 is closed.", "Case 1026 is closed.", True),
    Pair("The invoice INV-2044 is overdue.", "The invoice inv-2044 is overdue by a week.", True),
    Pair("Contact support@example.com for help.", "For help, contact support@example.com.", True),
    Pair("The owner of the account is Jane Doe.", "The owner of the account is Jane Doe, the regional manager.", True),
    Pair("You can return items within 30 days.", "Items can be returned within 30 days.", True),
    Pair("Your subscription renews every month.", "It renews monthly, on the day you first signed up.", True),
    Pair("The printer is out of paper.", "There is no paper left in the printer.", True),
    Pair("Your flight departs from gate 12.", "Please go to gate 12 for your flight.", True),
    Pair("The nearest store is in Hamburg.", "You will find the nearest store in Hamburg.", True),
    Pair("Delivery costs nothing.", "Delivery is free of charge.", True),
    Pair("The package arrives tomorrow.", "Your parcel should be with you by tomorrow.", True),
    # descriptions of an answer
    Pair("Summarization of the Global Media account", "Global Media is a customer since 2019 with 3 open deals.", True),
    Pair("Summary of the open cases", "You have two open cases: a broken screen and a late delivery.", True),
    Pair("The agent should greet the customer politely", "Hello and welcome! How can I help you today?", True),
    Pair("Lists the 3 open opportunities", "Open: Acme renewal, Globex upsell, Initech pilot.", True),
    Pair("Confirms that the appointment was booked", "You are all set for Friday at ten.", True),
    Pair("Asks for the order number", "Could you tell me your order number, please?", True),
    Pair("The response should mention the return policy", "You may send it back within a month.", True),
    Pair("Provides the weather forecast for Berlin", "In Berlin it will be sunny with 21 degrees.", True),
    # refusals that were expected
    Pair("The agent cannot answer this", "I'm sorry, I can't help with that.", True, "refusal"),
    Pair("The agent should decline to give medical advice", "I am not able to give medical advice.", True, "refusal"),
    Pair("Politely refuses to share other customers' data", "I can't share information on others.", True, "refusal"),
    Pair("The assistant must not disclose salaries", "I'm unable to share salaries.", True, "refusal"),
    Pair("I can't help with legal questions.", "Sorry, I cannot help with legal questions.", True, "refusal"),
    Pair("It says that it does not know the answer", "I don't know the answer to that.", True, "refusal"),
    Pair("Refusal to discuss competitors", "I'm not able to discuss competitors.", True, "refusal"),
    Pair("The bot should refuse to write a poem", "Writing poems is outside of my scope.", True, "refusal"),
    # refusals that were expected and not given
    Pair("The agent cannot answer this", "The answer is Paris.", False, "refusal"),
    Pair("The agent should decline to give medical advice", "Take two tablets with water.", False, "refusal"),
    Pair("Politely refuses to share other customers' data", "Jane's address is 5 Elm Street.", False, "refusal"),
    Pair("The assistant must not disclose salaries", "Tom earns 54,000 a year.", False, "refusal"),
    Pair("Refusal to discuss competitors", "Globex is the better choice for you.", False, "refusal"),
    # refusals and breakdowns instead of answers
    Pair("Your order ships on Tuesday.", "I'm sorry, but I can't help with that.", False, "refusal"),
    Pair("Summary of the open cases", "I don't have access to case data.", False, "refusal"),
    Pair("The total is 80 euros.", "I am unable to process your request.", False, "refusal"),
    Pair("The meeting is at noon.", "Something went wrong. Please try again later.", False, "refusal"),
    Pair("Provides the weather forecast for Berlin", "I don't know.", False, "refusal"),
    Pair("The nearest store is in Hamburg.", "An error occurred.", False, "refusal"),
    Pair("Your password has been reset.", "I'm not authorized to do so.", False, "refusal"),
    # other numbers
    Pair("The total is 1250 dollars.", "The total is 12500 dollars.", False, "numbers"),
    Pair("Refunds take 5 business days.", "Refunds take 15 business days.", False, "numbers"),
    Pair("Refunds take three business days.", "Refunds take six business days.", False, "numbers"),
    Pair("The store opens at 9 am.", "The store opens at 10 am.", False, "numbers"),
    Pair("The meeting is on March 5.", "The meeting is on March 6.", False, "numbers"),
    Pair("The invoice INV-2044 is overdue.", "The invoice INV-2045 is overdue.", False, "numbers"),
    Pair("The discount is 15%.", "The discount is 50%.", False, "numbers"),
    Pair("Your flight departs from gate 12.", "Your flight departs from gate 21.", False, "numbers"),
    Pair("Your balance is 2,000 points.", "Your balance is 200 points.", False, "numbers"),
    Pair("The meeting starts at 3:30 pm.", "The meeting starts at 4:30 pm.", False, "numbers"),
    Pair("Your bill is 49.90 euros.", "Your bill is 94.90 euros.", False, "numbers", "What do I owe for order 7?"),
    # other names
    Pair("The owner of the account is Jane Doe.", "The owner of the account is John Smith.", False, "names"),
    Pair("The nearest store is in Hamburg.", "The nearest store is in Munich.", False, "names"),
    Pair("The order ships on Tuesday.", "The order ships on Friday.", False, "names"),
    Pair("Summarization of the Global Media account", "The account of Acme Corp is new.", False, "names"),
    Pair("Please contact the sales team in April.", "Please contact the sales team in June.", False, "names"),
    Pair("Write to anna@example.com for this.", "Write to the team at otto@example.com for this.", False, "names"),
    Pair("Your manager is Maria Lopez.", "Your manager is Mario Lopez.", False, "names"),
    # the opposite, or something close that is wrong
    Pair("Your refund was approved.", "Your refund was rejected.", False),
    Pair("Your refund was approved.", "Your refund was not approved.", False),
    Pair("The item is in stock.", "The item is out of stock.", False),
    Pair("You can change the booking.", "You can't change the booking.", False),
    Pair("The train from Bonn goes to Kiel.", "The train from Kiel goes to Bonn.", False),
    Pair("The account is active.", "The account is inactive.", False),
    Pair("Your appointment is confirmed.", "Is your appointment confirmed?", False),
    Pair("The payment was received before the deadline.", "The payment was received after the deadline.", False),
    Pair("Turn the device on.", "Turn the device off.", False),
    Pair("The contract was signed.", "The contract was cancelled.", False),
    Pair("Prices increased this year.", "Prices decreased this year.", False),
    Pair("The order is delivered.", "The order is delayed.", False),
    Pair("Shipping is free for members.", "Shipping is free for everybody but members.", False),
    # another subject altogether
    Pair("Your order was shipped.", "Our headquarters are in Vienna.", False),
    Pair("The store opens at 9 am.", "Bananas are rich in potassium.", False),
    Pair("Your password has been reset.", "The weather will be sunny.", False),
    Pair("You can return items within 30 days.", "Our chef recommends the soup.", False),
    Pair("The warranty covers water damage.", "Please hold the line.", False),
    Pair("Delivery costs nothing.", "Which colour would you like?", False),
    Pair("Your subscription renews every month.", "", False),
)
