"""Messages of the Metadata, Connect and Agent APIs as values and bytes, without I/O, for client and org."""
