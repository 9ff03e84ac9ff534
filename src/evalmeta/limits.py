"""Every ceiling in evalmeta: bytes, depths, counts and seconds, each with its source."""

from __future__ import annotations

from typing import Final

# XML files: the largest public definition known is 1.4 MB and 5 levels deep.
MAX_XML_BYTES: Final = 5_000_000
MAX_XML_DEPTH: Final = 64
# Metadata files: 1,000 test cases have about 30,000 elements, a manifest names up to 10,000 components.
MAX_XML_ELEMENTS: Final = 100_000
MAX_XML_CHILDREN: Final = 12_000
# How many problems of structure, and how many of rules, are told of one file at a time.
MAX_PROBLEMS: Final = 1_000
# How many problems the reply to a deployment has, shared by its components; one of each at least.
MAX_DEPLOY_PROBLEMS: Final = 5_000

# Metadata API Developer Guide, "Metadata Limits": 39 MB zipped, 600 MB unzipped, 10,000 files.
MAX_ZIP_BYTES: Final = 39_000_000
MAX_UNZIPPED_BYTES: Final = 629_145_600
MAX_ZIP_ENTRIES: Final = 10_000
MAX_ZIP_RATIO: Final = 200

# A SOAP message carries the zip in base64 (4/3 of its size) and some envelope.
MAX_SOAP_BYTES: Final = 54_000_000
# What is left of it without the zip: a reply about 10,000 components has 5 to 8 MB and up to 140,000 elements.
# libxml2 reads up to 10 MB without its "huge" mode.
MAX_ENVELOPE_BYTES: Final = 9_000_000
MAX_ENVELOPE_ELEMENTS: Final = 300_000
MAX_JSON_BYTES: Final = 54_000_000
MAX_REPLY_BYTES: Final = 200_000_000
MAX_SETTINGS_BYTES: Final = 1_000_000
MAX_RECORDING_BYTES: Final = 200_000_000

# Testing API Developer Guide, "Considerations": 1,000 test cases a definition.
MAX_TEST_CASES: Final = 1_000
# The `sf agent test create` command accepts API names of up to 80 characters.
MAX_API_NAME_CHARS: Final = 80

# What an agent may answer in one turn before the case counts as broken.
MAX_ANSWER_CHARS: Final = 1_000_000
# What is kept of an error's own text, and the longest text the offline rater compares word by word.
MAX_ERROR_CHARS: Final = 2_000
MAX_RATED_CHARS: Final = 20_000

# Testing API Developer Guide, "Custom Evaluation Criteria": what a parameter's value may have.
MAX_PARAMETER_CHARS: Final = 100

# References: what one JSONPath may be and touch.
MAX_REFERENCE_CHARS: Final = 1_000
MAX_REFERENCE_MATCHES: Final = 10_000

# Seconds.
CASE_TIMEOUT_SECONDS: Final = 120.0
MAX_CASE_TIMEOUT_SECONDS: Final = 24 * 3600.0
HTTP_TIMEOUT_SECONDS: Final = 60.0
STORE_BUSY_SECONDS: Final = 10.0
DEPLOY_WAIT_SECONDS: Final = 33 * 60.0
RETRIEVE_WAIT_SECONDS: Final = 33 * 60.0
RUN_LEASE_SECONDS: Final = 15.0
CLOSE_SECONDS: Final = 10.0
SHUTDOWN_SECONDS: Final = 2.0

# Runs.
CONCURRENCY: Final = 10
MAX_CONCURRENCY: Final = 1_000
MAX_ITERATIONS: Final = 1_000
JOURNAL_BATCH: Final = 256
