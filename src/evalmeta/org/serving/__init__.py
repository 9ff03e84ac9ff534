"""A served org: its server, what it accepts of HTTP and from whom, and the file by which commands find it."""
