"""The messages of the Metadata and Connect APIs as values and bytes: no I/O, shared by client and org."""
