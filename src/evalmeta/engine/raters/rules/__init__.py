"""The offline rater: rules that decide what is plain; no network, no key, no model."""
