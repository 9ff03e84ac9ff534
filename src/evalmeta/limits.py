"""Every limit in evalmeta: bytes, depths, counts and seconds, each with its source."""

from __future__ import annotations

from typing import Final

# XML files: the largest public definition known is 1.4 MB and 5 levels deep.
MAX_XML_BYTES: Final = 5_000_000
MAX_XML_DEPTH: Final = 64
# Metadata files: 1,000 test cases have about 30,000 elements, a manifest has up to 10,000 components.
MAX_XML_ELEMENTS: Final = 90_000
MAX_XML_CHILDREN: Final = 12_000
# Metadata elements have no attributes, and one namespace of 41 characters.
MAX_XML_ATTRIBUTES: Final = 20_000
MAX_XML_NAMESPACES: Final = 100
MAX_XML_NAMESPACE_CHARS: Final = 300
# Up to this number of elements, libxml2 may log every error of a file: its log takes quadratic time.
MAX_LOGGED_ELEMENTS: Final = 3_000
# Problems of structure, and of rules, that are reported per file.
MAX_PROBLEMS: Final = 1_000
# Problems, and warnings, in a deployment's response, shared by its components; at least one of each.
MAX_DEPLOY_PROBLEMS: Final = 5_000
# Files without problems that a process remembers; about 100 bytes each.
MAX_VERDICTS: Final = 100_000
# Test cases that a process remembers, so that it does not parse their files again; about 900 bytes each, or more.
MAX_REMEMBERED_CASES: Final = 20_000

# Metadata API Developer Guide, "Metadata Limits": 39 MB zipped, 600 MB unzipped, 10,000 files.
MAX_ZIP_BYTES: Final = 39_000_000
MAX_UNZIPPED_BYTES: Final = 629_145_600
MAX_ZIP_ENTRIES: Final = 10_000
MAX_ZIP_RATIO: Final = 200

# A SOAP message contains the zip in base64 (4/3 of its size) and an envelope.
MAX_SOAP_BYTES: Final = 54_000_000
# A request without the zip: a retrieve of 10,000 components has 1 MB and 10,000 elements.
MAX_ENVELOPE_BYTES: Final = 9_000_000
MAX_ENVELOPE_ELEMENTS: Final = 300_000
# A response without the zip: listMetadata returns 600 bytes and 14 elements for each component of the org.
MAX_REPLY_ENVELOPE_BYTES: Final = MAX_SOAP_BYTES
MAX_REPLY_ELEMENTS: Final = 2_000_000
MAX_JSON_BYTES: Final = 54_000_000
MAX_REPLY_BYTES: Final = 200_000_000
MAX_SETTINGS_BYTES: Final = 1_000_000
MAX_RECORDING_BYTES: Final = 200_000_000
# Labelled pairs: 50,000 of them with 1 kB each.
MAX_LABELS_BYTES: Final = 50_000_000

# Test specs and tables: 1,000 test cases have about 30,000 values or cells; each use of an alias counts.
MAX_SPEC_BYTES: Final = 5_000_000
MAX_SPEC_VALUES: Final = 200_000
MAX_CASE_FILES: Final = 100
# Columns of a table, or different keys in JSON Lines.
MAX_CASE_NAMES: Final = 1_000
# The metadata of a test case: its values, and all of it as JSON, which each result of the case repeats.
MAX_METADATA_VALUES: Final = 100
MAX_METADATA_BYTES: Final = 10_000
MAX_CASE_FILES_BYTES: Final = 50_000_000
MAX_YAML_DEPTH: Final = 32
# Agent Script: the largest public script known has 90 kB, 10 levels of blocks and 12 operators in an expression.
MAX_SCRIPT_BYTES: Final = 2_000_000
MAX_SCRIPT_DEPTH: Final = 50
MAX_SCRIPT_OPERATORS: Final = 250
# What an agent in Agent Script may do in one turn: choices of its model, calls of actions, and transitions.
MAX_TURN_STEPS: Final = 100
# Previews of agents in Agent Script that a served org keeps in memory; one that was not used for a minute makes room
# for another. A session ends after half an hour without a message, and keeps the plans of its last turns.
MAX_PREVIEWS: Final = 200
PREVIEW_ROOM_SECONDS: Final = 60.0
PREVIEW_IDLE_SECONDS: Final = 1800.0
PREVIEW_TURN_SECONDS: Final = 300.0
MAX_PREVIEW_PLANS: Final = 50
# A request for a session has a script, what was compiled from it, and context variables.
MAX_PREVIEW_BYTES: Final = 4 * MAX_SCRIPT_BYTES
# Lines over which the brackets of one expression may reach.
MAX_SCRIPT_BRACKET_LINES: Final = 100
# One row of an evaluation set in JSON Lines: a trace with many spans has several MB.
MAX_ROW_BYTES: Final = 16_000_000
# A request of OTLP, or a file of them, unpacked: a trace with 10,000 spans has about 20 MB.
MAX_TRACE_BYTES: Final = 100_000_000
# What is kept of the traces of cases under way: of one, and of all together.
MAX_TRACE_SPANS: Final = 20_000
MAX_HELD_TRACE_BYTES: Final = 400_000_000
# How long a case waits for its trace, and how often agents that evalmeta starts export spans, with a margin.
TRACE_SECONDS: Final = 10.0
# How long a case whose turn ended in an error waits for the steps of the turn.
TRACE_ERROR_SECONDS: Final = 2.0
TRACE_EXPORT_SECONDS: Final = 0.15
# Traces that `evalmeta trace receive` keeps, the time without new spans after which a trace is shown, and the time that
# requests have at its end.
MAX_RECEIVED_TRACES: Final = 10_000
MAX_RECEIVED_SPANS: Final = 200_000
TRACE_QUIET_SECONDS: Final = 1.0
TRACE_END_SECONDS: Final = 2.0
# Cases that wait for their traces, and take no place of others.
MAX_UNSCORED_CASES: Final = 1_000
# A request of OTLP that evalmeta writes or sends; collectors take 4 MB or more.
TRACE_REQUEST_CHARS: Final = 1_000_000
MAX_COLLECTOR_REPLY_BYTES: Final = 64_000
# The tree of steps that is kept of a trace: its steps and levels, the bytes of each text, and of all texts.
MAX_STEPS: Final = 500
MAX_STEP_DEPTH: Final = 20
MAX_STEP_TEXT_BYTES: Final = 4_000
MAX_STEPS_BYTES: Final = 200_000
MAX_NUMBER_CHARS: Final = 20

# Testing API Developer Guide, "Considerations": 1,000 test cases a definition.
MAX_TEST_CASES: Final = 1_000
MAX_TRANSLATED_CASES: Final = 100_000  # of a file of another test tool
MAX_COMPARED_IDS: Final = 100_000
# The `sf agent test create` command accepts API names of up to 80 characters.
MAX_API_NAME_CHARS: Final = 80
# Custom scorers (@salesforce/agents, `agentScorers/types`).
MAX_SCORER_NAME_CHARS: Final = 35
MAX_SCORER_OUTPUTS: Final = 101

# The error of orgs for a longer description of an AiTestingDefinition: "Label: data value too large (max length=100)".
MAX_LABEL_CHARS: Final = 100

# What is read of a commit; git itself writes no longer messages than people do.
MAX_COMMIT_BYTES: Final = 1_000_000
# What is read of git's index when a run starts: about 4,500 files; and of files whose times differ from it.
MAX_INDEX_BYTES: Final = 500_000
MAX_HASHED_BYTES: Final = 10_000_000

# The regular expression of a check, and the answer that it searches: about 1.5 s for the slowest pattern.
MAX_PATTERN_CHARS: Final = 1_000
MAX_SEARCHED_CHARS: Final = 100_000
# The answer of an agent in one turn.
MAX_ANSWER_CHARS: Final = 1_000_000
# The response of an endpoint in one turn: several texts of that length.
MAX_ENDPOINT_BYTES: Final = 8_000_000
# The events of such a response, each of which has some hundred bytes for a few characters.
MAX_STREAM_BYTES: Final = 64_000_000
# The response line of a program: its text, actions and trace together.
MAX_LINE_BYTES: Final = 8_000_000
# Nesting of lists and objects: orjson writes 254 levels, and stored values are some levels deep.
MAX_JSON_DEPTH: Final = 100
# The stored traceback of an agent's error, which reports for people show in full.
MAX_TRACEBACK_CHARS: Final = 4_000
# The stored text of an error, and the longest text that the offline rater compares word by word.
MAX_ERROR_CHARS: Final = 2_000
MAX_RATED_CHARS: Final = 20_000

# Testing API Developer Guide, "Custom Evaluation Criteria": the length of a parameter's value.
MAX_PARAMETER_CHARS: Final = 100

# References: the length of a JSONPath, and the number of its matches.
MAX_REFERENCE_CHARS: Final = 1_000
MAX_REFERENCE_MATCHES: Final = 10_000

# Logins: tokens, keys, sfdx auth URLs and the responses to logins have at most a few kB.
MAX_LOGIN_BYTES: Final = 1_000_000
MAX_CALLBACK_BYTES: Final = 16_384

# Seconds.
# Salesforce Help, "OAuth 2.0 JWT Bearer Flow": an assertion is valid for at most three minutes.
ASSERTION_SECONDS: Final = 180
WEB_LOGIN_SECONDS: Final = 300.0
# The sf CLI starts in about a second, and may have to renew its session first.
SF_CLI_SECONDS: Final = 60.0
CASE_TIMEOUT_SECONDS: Final = 120.0
# In Salesforce's orgs, cases end after 15 to 30 seconds; some hang for about 20 minutes.
ORG_CASE_SECONDS: Final = 180.0
MAX_CASE_TIMEOUT_SECONDS: Final = 24 * 3600.0
HTTP_TIMEOUT_SECONDS: Final = 60.0
# The time to connect to an agent's endpoint; the answer has the time limit of the case.
CONNECT_SECONDS: Final = 10.0
# How long an endpoint may keep the connection of a stream open after the last event before it is closed.
STREAM_END_SECONDS: Final = 0.5
STORE_BUSY_SECONDS: Final = 10.0
# Of a store on a server: how long a statement may take, and after which silence the connection is given up.
STORE_STATEMENT_SECONDS: Final = 20.0
STORE_REPLY_SECONDS: Final = 30.0
# How long loading a table may take that is copied from another store.
STORE_LOAD_SECONDS: Final = 3 * 3600.0
# How many threads of a process have connections to it at a time, and how many rows a long query reads at once.
MAX_STORE_CONNECTIONS: Final = 10
STORE_ROWS_OF_A_READ: Final = 1_000
# How long a locked database may block the event loop, which asks the agents meanwhile.
LOOP_LOCKED_SECONDS: Final = 1.0
# A process reserves the slots of an agent's rate for so long at a time, and sees the back-off of others that late.
PACE_SLICE_SECONDS: Final = 0.2
# How long a run retries while another program has locked the database.
LOCKED_SECONDS: Final = 60.0
# Attempts of a request with transient failures, as in jsforce. Polling tolerates more errors in a row, because the org
# may restart. Pauses double, and Retry-After is honoured up to five minutes.
MAX_ATTEMPTS: Final = 5
MAX_POLL_ERRORS: Final = 20
MAX_RETRY_AFTER_SECONDS: Final = 300.0
DEPLOY_WAIT_SECONDS: Final = 33 * 60.0
RETRIEVE_WAIT_SECONDS: Final = 33 * 60.0
MAX_WAIT_MINUTES: Final = 7 * 24 * 60
RUN_LEASE_SECONDS: Final = 15.0
# How long a status request waits for the end of a job: the sf CLI polls only once a second.
SETTLE_SECONDS: Final = 0.3
# Metadata API Developer Guide, "deployRecentValidation()": a validation can be deployed for 10 days.
QUICK_DEPLOY_SECONDS: Final = 10 * 24 * 3600.0
# How long deployments and retrieves are kept; their responses may be large.
DEPLOY_KEPT_SECONDS: Final = 30 * 24 * 3600.0
RETRIEVE_KEPT_SECONDS: Final = 24 * 3600.0
# How long ratings of a model are cached.
RATING_KEPT_SECONDS: Final = 90 * 24 * 3600.0
CLOSE_SECONDS: Final = 10.0
SHUTDOWN_SECONDS: Final = 2.0
# How long a program may take to end after its stdin is closed, before it is killed.
PROGRAM_END_SECONDS: Final = 2.0

# A served org.
# REST API Developer Guide, "Status Codes and Error Responses", 431: an address and its headers together.
MAX_HEADER_BYTES: Final = 16_384
# The sf CLI sends 680 requests at once to write a manifest of a whole org.
MAX_REQUESTS: Final = 1_000
# All request bodies that are read at one time: ten of the largest deployments, at most half of them from one address.
MAX_BODIES_BYTES: Final = 10 * MAX_SOAP_BYTES
MAX_ADDRESS_BODIES_BYTES: Final = MAX_BODIES_BYTES // 2
# How long a client may take for a request's body, and longer for each byte that it sent at this rate.
BODY_SECONDS: Final = 30.0
MIN_BODY_BYTES_PER_SECOND: Final = 1_000
# Open connections; those without a request are closed for new ones. The process may have fewer file descriptors, and
# each thread that answers needs some for the database.
MAX_CONNECTIONS: Final = 4_000
SPARE_FILE_DESCRIPTORS: Final = 384
# Connections that are accepted before those above the limit are closed.
ACCEPTED_AT_ONCE: Final = 64
# How long a client may take for a TLS handshake: a few round trips.
HANDSHAKE_SECONDS: Final = 10.0
# How long a client may take for a request's head, and between two chunks of its body; nginx's defaults are twice that.
HEAD_SECONDS: Final = 30.0
PIECE_SECONDS: Final = 30.0
# "API Request Limits and Allocations": requests time out after 10 minutes.
REQUEST_SECONDS: Final = 600.0
# How long a client may send the rest of a request that is already answered; nginx's lingering_timeout.
REST_SECONDS: Final = 5.0
# nginx's default for idle connections; longer than clients keep them, so that none reuses a closing connection.
KEEP_ALIVE_SECONDS: Final = 75
# How long the check of a served org may import an agent; a run that needs longer starts without the check.
READINESS_SECONDS: Final = 60.0
# How long the check of a database for damage may take; 5 GB take several minutes.
INTEGRITY_SECONDS: Final = 5.0
# How much of a database `evalmeta test prune` writes anew, while others cannot write, instead of giving pages back step
# by step; and how long it gives pages back.
MAX_REWRITTEN_BYTES: Final = 1_000_000_000
SHRINK_SECONDS: Final = 60.0
# Topics and tools of an agent that is a Python object, and agents in it; a large one has about 200.
MAX_AGENT_PARTS: Final = 10_000
# A file with the topics and tools of an agent, as `evalmeta coverage` read them last.
MAX_KEPT_PARTS_BYTES: Final = 20_000_000
# How long one check of `evalmeta doctor` may take, and how long an agent may take to list its tools.
DOCTOR_SECONDS: Final = 30.0
# How long a server may take to start, and to answer a status request.
START_SECONDS: Final = 30.0
STATUS_SECONDS: Final = 5.0
# How long a server on another machine counts as alive after a heartbeat, which it sends every 5 seconds.
SERVER_LEASE_SECONDS: Final = 20.0
SERVER_SIGN_SECONDS: Final = 5
# A response is sent in chunks; the client must receive each within PIECE_SECONDS.
PIECE_BYTES: Final = 65_536
# Testing API Developer Guide, "Considerations": 10 runs in progress; others wait.
MAX_RUNS: Final = 10
# Runs that wait for a place, of one user and of all; a suite of several hundred tests is started at once.
MAX_WAITING_RUNS: Final = 2_000
MAX_WAITING_RUNS_OF_USER: Final = 1_000
# The logs of the workers of the latest runs.
MAX_RUN_LOGS: Final = 200
# A run whose workers died this often in a row, without finishing a case, gets no further worker.
MAX_WORKER_DEATHS: Final = 5
# A cluster must be reached in this time, and a run that has no worker there for the next one stops and can be resumed.
CLUSTER_SECONDS: Final = 60.0
WORKERS_LOST_SECONDS: Final = 120.0
# A worker that reports nothing for this time, such as behind a cut network, is lost. Agents may block it for a while.
WORKER_SILENCE_SECONDS: Final = 300.0
MAX_LOG_BYTES: Final = 5_000_000
TOKEN_DAYS: Final = 30
MAX_TOKEN_DAYS: Final = 365
# Salesforce, "Object Reference", User.Username.
MAX_USERNAME_CHARS: Final = 80

# Jobs that are queued or in progress at one time.
MAX_UNFINISHED_JOBS: Final = 2_000
# How long jobs wait for room on a full disk before clients are told to stop waiting.
DISK_FULL_SECONDS: Final = 60
# Metadata API Developer Guide, "listMetadata()": 3 queries per request.
MAX_LIST_QUERIES: Final = 3
# Metadata API Developer Guide, "readMetadata()": 10 names per request.
MAX_READ_NAMES: Final = 10
# Metadata API Developer Guide, "createMetadata()" and its siblings: 10 components per call.
MAX_SAVED_COMPONENTS: Final = 10
MAX_SAVE_ERRORS: Final = 20

# Runs.
CONCURRENCY: Final = 10
# How often a process of a served org looks for a free place of an agent.
PLACES_POLL_SECONDS: Final = 0.05
# How often `evaluate` looks whether it was cancelled, while it waits in a thread with an event loop.
THREAD_POLL_SECONDS: Final = 0.1
MAX_CONCURRENCY: Final = 1_000
MAX_ITERATIONS: Final = 1_000
MAX_QUARANTINE_DAYS: Final = 366
# How often a suspect case is asked again at most.
MAX_ANSWERS_AGAIN: Final = 20
# Earlier runs in which a failing case may have failed too.
MAX_RUNS_IN_A_ROW: Final = 10
MAX_RATE: Final = 10_000.0
MAX_SHARDS: Final = 1_000
# A folder in which the stores of shards are searched: its files and folders, and the levels below it.
MAX_SHARD_ENTRIES: Final = 100_000
MAX_SHARD_DEPTH: Final = 8
# The results of all shards of a test that are in memory while they are merged.
MERGED_CASES: Final = 20_000
MERGED_BYTES: Final = 16_000_000
# The largest integer of JSON and databases.
MAX_INTEGER: Final = 2**63 - 1
# Retries of transient failures.
# A cost limit in US dollars; how often a run looks at what the others have spent; and after how many answers without a
# price a run with a cost limit stops, if it knows of none with a price.
MAX_COST: Final = 1_000_000.0
SPENDING_SECONDS: Final = 0.2
ANSWERS_WITHOUT_PRICE: Final = 10
RETRIES: Final = 3
MAX_RETRIES: Final = 20
RETRY_PAUSE_SECONDS: Final = 0.5
MAX_RETRY_PAUSE_SECONDS: Final = 30.0
# Ratings of a model that a process caches in memory; about 1 kB each.
MAX_MEMORY_RATINGS: Final = 20_000
# Requests to an LLM rater for one rating, which the majority decides.
MAX_RATER_SAMPLES: Final = 25
# What a project adds to every prompt of an LLM rater: its instructions, and labelled examples.
MAX_INSTRUCTION_CHARS: Final = 20_000
MAX_RATER_EXAMPLES: Final = 50
# What the check of a model as rater costs by default: pairs that are rated again in other forms, and all requests.
PROBED_PAIRS: Final = 20
CHECK_REQUESTS: Final = 1_000
RATER_CONCURRENCY: Final = 8
# The text of one case that is sent to a model, about 50,000 tokens; and the model's response.
MAX_RUBRIC_CHARS: Final = 200_000
MAX_JUDGEMENT_CHARS: Final = 100_000
# Passages, or rubrics, of one answer that are judged one by one: each needs several requests.
MAX_JUDGED_PARTS: Final = 200
# An answer that took longer is on disk before its worker asks for the next one.
INSTANT_SECONDS: Final = 0.001
JOURNAL_BATCH: Final = 1_000
# Results within this time are committed together, because everything waits for the write to disk of a commit.
JOURNAL_SECONDS: Final = 0.05
# Results of a run that wait on this machine because the shared store cannot be reached, and the pause between attempts.
MAX_SPOOL_BYTES: Final = 2_000_000_000
SPOOL_SECONDS: Final = 1.0
# What clients of an org whose store cannot be reached are asked to wait.
UNREACHABLE_SECONDS: Final = 10
# How long work that never waits may block the event loop.
TURN_SECONDS: Final = 0.02
# The results of a run are sent in pages to clients that support them; a page has at least one case.
MAX_PAGE_CASES: Final = 1_000
MAX_PAGE_BYTES: Final = 2_000_000
# Stored results of a run that are larger are read from the database whenever they are used.
MAX_CASE_BYTES_IN_MEMORY: Final = 64_000

# The viewer: sessions of browsers, searches, forms, and the rows of a page. What a user has more than these of ends or
# is refused for this user alone.
MAX_USER_SESSIONS: Final = 100
MAX_USER_CODES: Final = 100
MAX_USER_STREAMS: Final = 30
VIEW_SESSION_SECONDS: Final = 12 * 3600.0
# How long a code logs in that a person enters, and one that a browser gets at once.
VIEW_CODE_SECONDS: Final = 600.0
FRONTDOOR_SECONDS: Final = 60.0
NAMED_USER_SECONDS: Final = 3600
MAX_SEARCH_CHARS: Final = 200
MAX_FORM_BYTES: Final = 1_000_000
VIEW_ROWS: Final = 50
# Rows of a CSV file that are read together.
CSV_ROWS: Final = 500
MAX_SUITE_RUNS: Final = 500
MAX_RUN_TAGS: Final = 100
MAX_SEARCHED_ROWS: Final = 20_000
MAX_SEARCHED_BYTES: Final = 5_000_000
# The search over all runs: the words of a result, how many results are read together, and how long a page reads results
# that the index lacks before it is shown. A thread in the background then reads the others.
MAX_SEARCHED_WORDS: Final = 5_000
SEARCHED_AT_ONCE: Final = 500
SEARCH_UPDATE_SECONDS: Final = 0.3
MAX_LISTED_MATCHES: Final = 20
# How often the viewer looks for new results, and when a browser that follows them has to call again: before
# PIECE_SECONDS, after which a silent client counts as gone.
VIEW_POLL_SECONDS: Final = 0.5
VIEW_STREAM_SECONDS: Final = 20.0
# An export of the pages: runs and other pages of one kind, the newest first; the results of cases of all runs together,
# and the characters of their JSON, of which compression leaves about a fifth.
MAX_EXPORTED_RUNS: Final = 100
MAX_EXPORTED_COMPARISONS: Final = 20
MAX_EXPORTED_CASES: Final = 5_000
MAX_EXPORTED_CHARS: Final = 8_000_000
# What a page computes from all results of a run: of unfinished ones each time, of others once.
MAX_LIVE_CASES: Final = 2_000
# People's notes on results, and the runs in the history of a case.
MAX_NOTE_CHARS: Final = 2_000
VIEW_HISTORY: Final = 20
# The runs of each test in which `evalmeta changes` looks for what broke, before it looks for older ones.
CHANGES_RUNS: Final = 20
# Results of a run that a page compares with those of another, and comparisons that stay in memory.
MAX_VIEW_COMPARED: Final = 20_000
KEPT_COMPARISONS: Final = 4
# The agents or runs that a page shows side by side, and the results of all of them.
MAX_VIEW_COLUMNS: Final = 12
MAX_VIEW_MATRIX_RESULTS: Final = 60_000
# Results that wait for the judgement of a person, and their numbers for users that stay in memory.
MAX_REVIEWED: Final = 200
KEPT_REVIEW_COUNTS: Final = 100
# Steps of a turn and expectations of a case that a page draws at once.
VIEW_STEPS: Final = 100
VIEW_EXPECTATIONS: Final = 50
# Runs in a trend, runs in the grid of a test, and components on a page.
VIEW_TREND_RUNS: Final = 100
VIEW_GRID_RUNS: Final = 30
VIEW_COMPONENTS: Final = 500

# Archives: the rows and bytes of results that are compressed together, so that few are in memory at a time; the largest
# such group that is read, as an answer may have megabytes; and the manifest, which has the contents of tests.
ARCHIVE_GROUP_ROWS: Final = 5_000
ARCHIVE_GROUP_BYTES: Final = 8_000_000
MAX_ARCHIVE_GROUP_BYTES: Final = 256_000_000
MAX_ARCHIVE_MANIFEST_BYTES: Final = 256_000_000
ARCHIVE_PROGRESS_ROWS: Final = 100_000
# Of one attempt at a request to a collector of traces, and of all attempts at it together.
COLLECTOR_REQUEST_SECONDS: Final = 10.0
COLLECTOR_SECONDS: Final = 60.0
# Of one attempt at a request to S3; there are three.
ARCHIVE_CONNECT_SECONDS: Final = 10.0
ARCHIVE_REQUEST_SECONDS: Final = 30.0
# Traces of this process that `evalmeta.mlflow` keeps.
MAX_KEPT_TRACES: Final = 10_000
