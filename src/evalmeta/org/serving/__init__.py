"""The server of an org: limits of HTTP, allowed hosts, and the file with its address."""
