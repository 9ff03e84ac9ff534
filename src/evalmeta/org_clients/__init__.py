"""What only other people's clients of a served org need: queries, records, single components, REST deployments."""
