"""How the commands run tests: options, calls, earlier runs, reports, baselines."""
