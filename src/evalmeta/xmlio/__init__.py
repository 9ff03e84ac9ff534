"""The only door between bytes and XML: one hardened reader, one byte-stable writer."""
