"""The nouns of evalmeta: immutable values that import nothing but errors and limits."""
