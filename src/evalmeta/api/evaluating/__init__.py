"""`evaluate`: tests an agent that is in Python, without an org and a database."""
