"""The org as an ASGI application: the same one embedded in a process and served to others."""
