"""The library's verbs: what the command line and other programs call.

One module for each kind of work, so that checking a file loads no web framework:
`metadata` (files), `orgs` (deploy and retrieve), `tests` (runs).
"""
