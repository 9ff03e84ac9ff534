"""How the commands run tests: options, calls, progress, reports, baselines."""
