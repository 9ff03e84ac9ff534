"""Is this metadata right? A schema for structure, a table of rules for the rest; findings are values."""
