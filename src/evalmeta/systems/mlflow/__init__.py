"""MLflow 3: its evaluations in Python, with its scorers, feedback and traces, on evalmeta's engine."""
