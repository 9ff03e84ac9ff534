"""The library's verbs: what the command line and other programs call.

One module for each kind of work, so that checking a file loads no web framework:
`metadata`, `formatting`, `manifests`, `packages` and `conversions` (files),
`selections` (which components), `orgs` (deploy and retrieve), `changes` (status and
diff, with `tracking`, `sides` and `conflicts` behind them), `tests` (runs in an org),
`evaluations` (runs without one, with `assignments`, `bindings`, `journals` and `results`).
"""
