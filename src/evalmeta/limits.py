"""Every ceiling in evalmeta: bytes, depths, counts and seconds, each with its source."""

from __future__ import annotations

from typing import Final

# XML files: the largest public definition known is 1.4 MB and 5 levels deep.
MAX_XML_BYTES: Final = 5_000_000
MAX_XML_DEPTH: Final = 64
# Metadata files: 1,000 test cases have about 30,000 elements, a manifest names up to 10,000 components.
MAX_XML_ELEMENTS: Final = 90_000
MAX_XML_CHILDREN: Final = 12_000
# Metadata elements have no attributes, and one namespace of 41 characters.
MAX_XML_ATTRIBUTES: Final = 20_000
MAX_XML_NAMESPACES: Final = 100
MAX_XML_NAMESPACE_CHARS: Final = 300
# Up to this number of elements, libxml2 may log every error of a file: its log takes quadratic time.
MAX_LOGGED_ELEMENTS: Final = 3_000
# How many problems of structure, and how many of rules, are told of one file at a time.
MAX_PROBLEMS: Final = 1_000
# How many problems, and how many warnings, a deployment's reply has, shared by its components; one of each at least.
MAX_DEPLOY_PROBLEMS: Final = 5_000
# How many files a process remembers to be without problems; about 100 bytes each.
MAX_VERDICTS: Final = 100_000

# Metadata API Developer Guide, "Metadata Limits": 39 MB zipped, 600 MB unzipped, 10,000 files.
MAX_ZIP_BYTES: Final = 39_000_000
MAX_UNZIPPED_BYTES: Final = 629_145_600
MAX_ZIP_ENTRIES: Final = 10_000
MAX_ZIP_RATIO: Final = 200

# A SOAP message carries the zip in base64 (4/3 of its size) and some envelope.
MAX_SOAP_BYTES: Final = 54_000_000
# What is left of a call without the zip: a retrieve that names 10,000 components has 1 MB and 10,000 elements.
MAX_ENVELOPE_BYTES: Final = 9_000_000
MAX_ENVELOPE_ELEMENTS: Final = 300_000
# The same of a reply, which has about 600 bytes and 14 elements a component: listMetadata tells of all that an org has.
MAX_REPLY_ENVELOPE_BYTES: Final = MAX_SOAP_BYTES
MAX_REPLY_ELEMENTS: Final = 2_000_000
MAX_JSON_BYTES: Final = 54_000_000
MAX_REPLY_BYTES: Final = 200_000_000
MAX_SETTINGS_BYTES: Final = 1_000_000
MAX_RECORDING_BYTES: Final = 200_000_000

# Test specs and tables: 1,000 test cases have about 30,000 values or cells; what aliases repeat counts each time.
MAX_SPEC_BYTES: Final = 5_000_000
MAX_SPEC_VALUES: Final = 200_000
MAX_YAML_DEPTH: Final = 32
# One row of an evaluation set in JSON Lines: a trace with many spans has some MB.
MAX_ROW_BYTES: Final = 16_000_000
MAX_NUMBER_CHARS: Final = 20

# Testing API Developer Guide, "Considerations": 1,000 test cases a definition.
MAX_TEST_CASES: Final = 1_000
MAX_COMPARED_IDS: Final = 100_000
# The `sf agent test create` command accepts API names of up to 80 characters.
MAX_API_NAME_CHARS: Final = 80

# What orgs answer to a longer description of an AiTestingDefinition: "Label: data value too large (max length=100)".
MAX_LABEL_CHARS: Final = 100

# What an agent may answer in one turn before the case counts as broken.
MAX_ANSWER_CHARS: Final = 1_000_000
# What an endpoint may answer in one turn: some texts of that length.
MAX_ENDPOINT_BYTES: Final = 8_000_000
# The same of a program that answers in one line: its text, its actions and its trace together.
MAX_LINE_BYTES: Final = 8_000_000
# How far lists and objects go into each other; orjson writes 254 levels, and what is kept stands some levels down.
MAX_JSON_DEPTH: Final = 100
# What is kept of an error's own text, and the longest text the offline rater compares word by word.
MAX_ERROR_CHARS: Final = 2_000
MAX_RATED_CHARS: Final = 20_000

# Testing API Developer Guide, "Custom Evaluation Criteria": what a parameter's value may have.
MAX_PARAMETER_CHARS: Final = 100

# References: what one JSONPath may be and touch.
MAX_REFERENCE_CHARS: Final = 1_000
MAX_REFERENCE_MATCHES: Final = 10_000

# Logins: tokens, keys and sfdx auth URLs have a few kB at most, and so have the replies about them.
MAX_LOGIN_BYTES: Final = 1_000_000
MAX_CALLBACK_BYTES: Final = 16_384

# Seconds.
# Salesforce Help, "OAuth 2.0 JWT Bearer Flow": an assertion holds for three minutes at most.
ASSERTION_SECONDS: Final = 180
WEB_LOGIN_SECONDS: Final = 300.0
# The sf CLI starts in about a second, and may have to renew its own session first.
SF_CLI_SECONDS: Final = 60.0
CASE_TIMEOUT_SECONDS: Final = 120.0
MAX_CASE_TIMEOUT_SECONDS: Final = 24 * 3600.0
HTTP_TIMEOUT_SECONDS: Final = 60.0
# How long an agent's endpoint may take to accept a connection; for its answer a case has its own time.
CONNECT_SECONDS: Final = 10.0
STORE_BUSY_SECONDS: Final = 10.0
# How long a run tries again to get a database that another program holds, before it stops.
LOCKED_SECONDS: Final = 60.0
# A request that fails in passing is made so often, as jsforce does; a question about a job more often in a row: an org
# may be restarted meanwhile. Pauses double, and Retry-After is honoured up to five minutes.
MAX_ATTEMPTS: Final = 5
MAX_POLL_ERRORS: Final = 20
MAX_RETRY_AFTER_SECONDS: Final = 300.0
DEPLOY_WAIT_SECONDS: Final = 33 * 60.0
RETRIEVE_WAIT_SECONDS: Final = 33 * 60.0
MAX_WAIT_MINUTES: Final = 7 * 24 * 60
RUN_LEASE_SECONDS: Final = 15.0
# How long a question about a job waits for its end: the sf CLI asks again only a second later.
SETTLE_SECONDS: Final = 0.3
# Metadata API Developer Guide, "deployRecentValidation()": a validation can be deployed for 10 days.
QUICK_DEPLOY_SECONDS: Final = 10 * 24 * 3600.0
# How long an org can be asked about deployments and retrieves; their replies may be large.
DEPLOY_KEPT_SECONDS: Final = 30 * 24 * 3600.0
RETRIEVE_KEPT_SECONDS: Final = 24 * 3600.0
# How long it is remembered what a model said of an answer.
RATING_KEPT_SECONDS: Final = 90 * 24 * 3600.0
CLOSE_SECONDS: Final = 10.0
SHUTDOWN_SECONDS: Final = 2.0
# How long a program may take to end when its stdin does, before it is killed.
PROGRAM_END_SECONDS: Final = 2.0

# A served org.
# REST API Developer Guide, "Status Codes and Error Responses", 431: an address and its headers together.
MAX_HEADER_BYTES: Final = 16_384
# The sf CLI asks 680 things at once to write a manifest of a whole org (reference: salesforce-wire.md section 4).
MAX_REQUESTS: Final = 1_000
# Bodies that are being read at one time, all together: ten of the largest deployments.
MAX_BODIES_BYTES: Final = 10 * MAX_SOAP_BYTES
# How long a client may take for a request's head, and between two pieces of its body; nginx's defaults are twice that.
HEAD_SECONDS: Final = 30.0
PIECE_SECONDS: Final = 30.0
# "API Request Limits and Allocations": calls end after 10 minutes.
REQUEST_SECONDS: Final = 600.0
# How long a client may send the rest of a request that was answered already; nginx's lingering_timeout.
REST_SECONDS: Final = 5.0
# nginx's default for idle connections; a client that reuses one must not find it closing.
KEEP_ALIVE_SECONDS: Final = 75
# How long a server may take until it answers, and for an answer to whoever asks whether it does.
START_SECONDS: Final = 30.0
STATUS_SECONDS: Final = 5.0
# How long a server on another machine counts as alive after a sign of life, of which it gives one every 5 seconds.
SERVER_LEASE_SECONDS: Final = 20.0
SERVER_SIGN_SECONDS: Final = 5
# An answer goes out in pieces, each of which the client must have taken in PIECE_SECONDS.
PIECE_BYTES: Final = 65_536
# Testing API Developer Guide, "Considerations": 10 runs in progress; others wait.
MAX_RUNS: Final = 10
# A run whose workers died so often, one after the other and without finishing a case, would take the next one along.
MAX_WORKER_DEATHS: Final = 5
MAX_LOG_BYTES: Final = 5_000_000
TOKEN_DAYS: Final = 30
MAX_TOKEN_DAYS: Final = 365
# Salesforce, "Object Reference", User.Username.
MAX_USERNAME_CHARS: Final = 80

# Jobs that wait or are worked on at one time.
MAX_UNFINISHED_JOBS: Final = 2_000
# Metadata API Developer Guide, "listMetadata()": 3 queries a call.
MAX_LIST_QUERIES: Final = 3
# Metadata API Developer Guide, "readMetadata()": 10 names a call.
MAX_READ_NAMES: Final = 10

# Runs.
CONCURRENCY: Final = 10
MAX_CONCURRENCY: Final = 1_000
MAX_ITERATIONS: Final = 1_000
MAX_RATE: Final = 10_000.0
MAX_SHARDS: Final = 1_000
# What JSON and databases hold.
MAX_INTEGER: Final = 2**63 - 1
# What failed in passing is tried again so often.
RETRIES: Final = 3
MAX_RETRIES: Final = 20
RETRY_PAUSE_SECONDS: Final = 0.5
MAX_RETRY_PAUSE_SECONDS: Final = 30.0
# What an LLM rater is asked for one rating, to decide by the majority.
MAX_RATER_SAMPLES: Final = 25
RATER_CONCURRENCY: Final = 8
# The most that is sent of one case, about 50,000 tokens; and what a model may write about it.
MAX_RUBRIC_CHARS: Final = 200_000
MAX_JUDGEMENT_CHARS: Final = 100_000
# How many passages, or rubrics, of one answer are judged one by one: each costs some questions.
MAX_JUDGED_PARTS: Final = 200
JOURNAL_BATCH: Final = 1_000
# Results that come within this time are committed together; a commit is a write to the disk that everything waits for.
JOURNAL_SECONDS: Final = 0.05
# How long work that never waits keeps others from their turn in the event loop.
TURN_SECONDS: Final = 0.02
# The results of a run travel in pages, to clients that can put them together; a page has one case at least.
MAX_PAGE_CASES: Final = 1_000
MAX_PAGE_BYTES: Final = 8_000_000
