"""XML: a hardened reader, the schemas, and a writer that always returns the same bytes."""
