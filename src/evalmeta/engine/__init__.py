"""The engine: plan, ask the subject, score, journal, summarise. It never sees a file format."""
