"""Breaks of the code that tests must notice."""

from __future__ import annotations

from typing import Final

from breaks.broken_copy import Break

_SCORERS: Final = (
    Break(
        "a text that contains another equals it",
        "engine/scorers/comparisons.py",
        '    "equals": eq,\n    "contains": contains,',
        '    "equals": contains,\n    "contains": contains,',
        ("engine/scorers/test_comparisons.py::test_string_operators_are_case_sensitive",),
    ),
    Break(
        "at least means more than",
        "engine/scorers/comparisons.py",
        '"greater_than_or_equal": ge,',
        '"greater_than_or_equal": gt,',
        ("engine/scorers/test_comparisons.py::test_numeric_operators_compare_numbers",),
    ),
    Break(
        "a null is compared as a text",
        "engine/scorers/comparisons.py",
        "    if actual is None:\n        return _Comparison",
        "    if actual is None and not actual_text:\n        return _Comparison",
        ("engine/scorers/test_comparisons.py::test_a_null_fails_and_is_shown",),
    ),
    Break(
        "a value that the agent does not report fails",
        "engine/scorers/comparisons.py",
        "if isinstance(error, NotReported):\n        return undecided(expectation, str(error), expected",
        "if not str(error):\n        raise ValueError(expected",
        ("engine/scorers/test_comparisons.py::test_a_member_that_the_agent_does_not_report_is_undecided",),
    ),
    Break(
        "true equals 1 in arguments",
        "engine/scorers/trajectories.py",
        '    if isinstance(value, bool):\n        return "truth", value\n',
        "",
        ("engine/scorers/test_trajectories.py::test_arguments_are_compared_as_json",),
    ),
    Break(
        "calls are compared without their arguments",
        "engine/scorers/trajectories.py",
        "name if names_only else (name, _frozen(args))",
        "name",
        ("engine/scorers/test_trajectories.py::test_arguments_are_compared_as_json",),
    ),
    Break(
        "a score that is not a number is kept",
        "engine/scorers/__init__.py",
        "if number is not None and not _is_number(number):",
        "if isinstance(number, str):",
        ("engine/test_scorer.py::test_a_score_that_is_no_number_is_an_error_and_never_a_pass",),
    ),
    Break(
        "a scorer that fails decides nothing",
        "engine/scorers/__init__.py",
        'return broken(expectation, f"{what}: {error_text(error)}", actual=exchange.generated.outcome)',
        'return TestResult(expectation.name, Verdict.UNDECIDED, "", "", None, what)',
        ("engine/test_scorer.py::test_a_scorer_that_breaks_gives_an_error_with_the_reason",),
    ),
    Break(
        "a reference may touch any number of values",
        "engine/references.py",
        "if self._budget < 0:",
        "if self._budget < -(10**5):",
        ("engine/test_references.py::test_a_reference_that_touches_too_much_is_stopped",),
    ),
    Break(
        "JSON inside a text is not read",
        "engine/references.py",
        "if not isinstance(node, str) or not node.lstrip()",
        "if not isinstance(node, str) or node or not node.lstrip()",
        ("engine/test_references.py::test_json_in_a_string_is_opened_on_the_way",),
    ),
    Break(
        "true equals 1 in filters",
        "engine/references.py",
        "left == right and isinstance(left, bool) == isinstance(right, bool)",
        "left == right",
        ("engine/test_references.py::test_filters_compare_by_kind",),
    ),
)

_VERDICTS: Final = (
    Break(
        "a case without results passes",
        "model/aggregation.py",
        "return _PASS if results else Verdict.UNDECIDED",
        "return _PASS",
        ("cli/test_run.py::test_a_case_without_checks_does_not_pass",),
    ),
    Break(
        "an error weighs less than a pass",
        "model/aggregation.py",
        "(Verdict.FAILURE, Verdict.ERROR, Verdict.PASS)",
        "(Verdict.FAILURE, Verdict.PASS, Verdict.ERROR)",
        ("model/test_aggregation.py::test_the_worst_result_is_the_verdict_of_the_case",),
    ),
    Break(
        "a mean passes although a result was not judged",
        "model/aggregation.py",
        "return Verdict.UNDECIDED if self._was_unjudged else Verdict.PASS",
        "return Verdict.PASS",
        ("model/test_aggregation.py::test_a_mean_with_an_unjudged_result_cannot_pass",),
    ),
    Break(
        "undecided results pass although they must fail",
        "model/aggregation.py",
        'if options.undecided != "fail" or case.verdict',
        "if options.undecided or case.verdict",
        ("model/test_tally.py::test_undecided_results_fail_a_case_when_the_options_say_so",),
    ),
    Break(
        "a run with missing cases passes",
        "model/tally.py",
        "return summary.verdict if is_complete else Verdict.ERROR",
        "return summary.verdict",
        ("report/test_report.py::test_a_run_with_missing_cases_has_not_passed",),
    ),
    Break(
        "a case in quarantine counts",
        "model/tally.py",
        "        if case.is_quarantined:\n            self._quarantined += 1",
        "        if case.is_quarantined and not case.results:\n            self._quarantined += 1",
        ("model/test_tally.py::test_a_case_in_quarantine_changes_no_number_but_its_own",),
    ),
    Break(
        "the level of suspects is ten times as large",
        "engine/suspects.py",
        "_LEVEL: Final = 0.0025",
        "_LEVEL: Final = 0.025",
        ("cli/test_gate_simulated.py::test_a_command_decides_as_the_simulation_does",),
    ),
    Break(
        "one pass does not acquit a suspect",
        "engine/suspects.py",
        "    if again.passed:\n        return",
        "    if again.passed < 0:\n        return",
        ("engine/test_suspects.py::test_one_pass_acquits",),
    ),
    Break(
        "cases are tested without correction",
        "engine/significance.py",
        "max(largest, min(1.0, attainable))",
        "p_value",
        ("engine/test_significance.py::test_cases_that_cannot_be_significant_add_nothing_to_the_correction",),
    ),
    Break(
        "tests are corrected without steps",
        "engine/significance.py",
        "        left -= weights[place]\n",
        "",
        ("engine/test_significance.py::test_holms_correction_goes_in_steps_by_weight",),
    ),
    Break(
        "noise between runs is ignored",
        "engine/significance.py",
        "if noise <= 1 or not 0 < p_value < 1:",
        "if noise or not 0 < p_value < 1:",
        ("engine/test_significance.py::test_noise_between_runs_makes_a_change_less_significant",),
    ),
    Break(
        "the level for falls is twice as large",
        "engine/gate.py",
        "SIGNIFICANCE_LEVEL / 0.045",
        "SIGNIFICANCE_LEVEL / 0.09",
        ("engine/test_gate.py::test_falls_of_all_cases_together_have_four_and_a_half_percent",),
    ),
    Break(
        "the level for single cases is ten times as large",
        "engine/gate.py",
        "SIGNIFICANCE_LEVEL / 0.0025",
        "SIGNIFICANCE_LEVEL / 0.025",
        ("engine/test_comparison.py::test_a_cases_iterations_are_tested_on_their_own",),
    ),
)

_RUNNING: Final = (
    Break(
        "results are reported before they are saved",
        "engine/runner.py",
        "self._journal.append(batch)\n            if self._on_results:\n                self._on_results(batch)",
        "if self._on_results:\n                self._on_results(batch)\n            self._journal.append(batch)",
        ("engine/test_runner.py::test_results_are_committed_before_they_are_reported",),
    ),
    Break(
        "a case is retried once too often",
        "engine/case_run.py",
        "failures > policy.retries:",
        "failures > policy.retries + 1:",
        ("engine/test_pacer.py::test_too_many_failures_are_an_error_with_their_number",),
    ),
    Break(
        "the rate of an agent is not kept",
        "engine/pacer.py",
        "self._next_slot = ready + interval",
        "self._next_slot = ready",
        ("engine/test_pacer.py::test_utterances_are_spread_over_time",),
    ),
    Break(
        "a busy agent is asked at the same pace",
        "engine/pacer.py",
        "max(1.0, self._window / 2)",
        "max(1.0, self._window)",
        ("engine/test_pacer.py::test_a_busy_agent_reduces_the_concurrency_and_answers_increase_it",),
    ),
    Break(
        "a change that may have been made is repeated",
        "protocol/http.py",
        "Failure(is_transient=True, is_unprocessed=False)",
        "Failure(is_transient=True, is_unprocessed=True)",
        ("client/test_http_retries.py::test_a_change_that_may_have_been_made_is_never_repeated",),
    ),
    Break(
        "Retry-After is ignored",
        "protocol/http.py",
        "    if _NUMBER.fullmatch(header):\n        return float(header)\n",
        "",
        ("client/test_http_retries.py::test_too_long_a_retry_after_fails_immediately",),
    ),
    Break(
        "replies of orgs are logged",
        "protocol/http.py",
        "_IS_REDACTED.set(True)",
        "_IS_REDACTED.set(False)",
        ("protocol/test_http_logging.py::test_our_requests_are_logged_without_what_was_answered",),
    ),
)

_STORE: Final = (
    Break(
        "a worker that lost its run saves results",
        "store/runs.py",
        "!= [(self._worker,)]:",
        "== []:",
        ("store/test_runs.py::test_a_worker_that_lost_the_run_cannot_append",),
    ),
    Break(
        "a run is claimed by two workers",
        "store/runs.py",
        "AND worker IS ? AND lease_until IS ?",
        "AND (? OR TRUE) AND (? OR TRUE)",
        ("store/test_runs.py::test_a_free_run_can_be_claimed_once",),
    ),
    Break(
        "a run that is over is claimed",
        "store/runs.py",
        "AND status IN ('NEW', 'IN_PROGRESS') AND worker IS ?",
        "AND worker IS ?",
        ("store/test_runs.py::test_a_run_that_is_over_cannot_be_claimed",),
    ),
    Break(
        "any worker ends a run",
        "store/runs.py",
        "tally = ?, verdict = ?\n            WHERE id = ? AND worker = ?",
        "tally = ?, verdict = ?\n            WHERE id = ? AND (? OR TRUE)",
        ("store/test_runs.py::test_only_the_owner_finishes_a_run",),
    ),
    Break(
        "users see the runs of others",
        "store/runs.py",
        "(? OR user_id = ?)",
        "(? OR TRUE OR user_id = ?)",
        ("store/test_runs.py::test_a_run_is_seen_by_its_user_and_by_admins",),
    ),
    Break(
        "a migration that fails leaves half of it",
        "store/database.py",
        "migrations: Sequence[str]) -> None:\n    with database.transaction():",
        "migrations: Sequence[str]) -> None:\n    if database:",
        ("store/test_database.py::test_a_migration_that_fails_changes_nothing",),
    ),
    Break(
        "an unchanged component gets a new date",
        "store/components.py",
        "for name, content in contents.items() if changes[name].changed)",
        "for name, content in contents.items())",
        ("store/test_components.py::test_the_same_bytes_change_nothing_not_even_the_date",),
    ),
    Break(
        "the time of a change goes back",
        "store/components.py",
        "max(math.floor(now * 1000), round(float(last) * 1000) + 1)",
        "math.floor(now * 1000)",
        ("org/test_deployments.py::test_a_change_is_dated_after_every_change_before_and_not_after_its_deployment",),
    ),
    Break(
        "a validation is deployed although the org changed",
        "store/jobs.py",
        "AND place > (SELECT place FROM job",
        "AND place < (SELECT place FROM job",
        ("store/test_jobs.py::test_later_changes_of_the_org_outdate_a_validation",),
    ),
    Break(
        "a validation is deployed twice",
        "store/jobs.py",
        "AND status NOT IN ('Failed', 'Canceled'))",
        "AND status = 'Pending')",
        ("org/test_jobs.py::test_a_validation_is_deployed_once",),
    ),
    Break(
        "the newest job comes first",
        "store/jobs.py",
        'reply IS NULL ORDER BY id"',
        'reply IS NULL ORDER BY id DESC"',
        ("store/test_jobs.py::test_the_oldest_job_comes_first",),
    ),
    Break(
        "a revoked token is accepted",
        "store/users.py",
        "expires_at > ? AND revoked_at IS NULL",
        "expires_at > ?",
        ("store/test_users.py::test_a_token_ends_when_it_is_revoked",),
    ),
    Break(
        "an expired token is accepted",
        "store/users.py",
        "expires_at > ? AND revoked_at IS NULL",
        "(expires_at > ? OR TRUE) AND revoked_at IS NULL",
        ("store/test_users.py::test_a_token_ends_when_it_expires",),
    ),
    Break(
        "a token is accepted by its public part",
        "store/users.py",
        "if not secrets.compare_digest(sha256, _sha256(token)) or not is_valid:",
        "if not is_valid:",
        ("store/test_users.py::test_similar_tokens_are_rejected",),
    ),
)

_ORG: Final = (
    Break(
        "a process with a reused id counts as alive",
        "org/lease.py",
        "return started == _start_time(int(process)) if started else None",
        "return True",
        ("org/test_lease.py::test_a_process_that_has_the_id_of_a_dead_worker_is_not_this_worker",),
    ),
    Break(
        "a zombie counts as alive",
        "org/lease.py",
        'return "" if fields[0] in {"Z", "X"} else fields[19]',
        "return fields[19]",
        ("org/test_lease.py::test_a_process_that_has_ended_but_is_still_listed_is_dead",),
    ),
    Break(
        "a lease of another machine never ends",
        "org/lease.py",
        "return not 0 <= left <= 2 * limits.RUN_LEASE_SECONDS if is_alive is None",
        "return False if is_alive is None",
        ("org/test_lease.py::test_of_a_worker_on_another_machine_only_the_lease_counts",),
    ),
    Break(
        "a deployment with a failure saves the rest",
        "org/deployments.py",
        "not options.check_only and not (failures and options.rollback_on_error)",
        "not options.check_only",
        ("org/test_deployments.py::test_one_refused_component_keeps_all_the_others_out",),
    ),
    Break(
        "a check saves",
        "org/deployments.py",
        "not options.check_only and not (failures and options.rollback_on_error)",
        "not (failures and options.rollback_on_error)",
        ("org/test_deployments.py::test_a_check_reports_changes_without_making_them",),
    ),
    Break(
        "what must be deleted first is not deleted",
        "org/deployments.py",
        "            *_delete(org, (deletion for deletion in package.deletions if deletion.first)),\n",
        "",
        ("org/test_jobs.py::test_what_is_deleted_first_is_made_anew_and_what_is_deleted_last_is_gone",),
    ),
    Break(
        "a canceled deployment is executed",
        "org/deployments.py",
        'if current.status == "Canceling":\n            result',
        'if current.status == "Cancelling":\n            result',
        ("org/test_jobs.py::test_a_canceled_deployment_changes_nothing_and_names_the_user",),
    ),
    Break(
        "a deployment that another worker ended is executed again",
        "org/deployments.py",
        "        now = org.components.next_timestamp(time.time())\n"
        '        current = org.jobs.get("deploy", job.id)\n'
        "        if current is None or current.is_over:",
        "        now = org.components.next_timestamp(time.time())\n"
        '        current = org.jobs.get("deploy", job.id)\n'
        "        if current is None:",
        ("org/test_jobs.py::test_a_deployment_that_another_worker_has_ended_is_not_executed_again",),
    ),
)

_FILES: Final = (
    Break(
        "a zip's checksum is not compared",
        "package/zip_reader.py",
        "if zlib.crc32(content) != entry.crc:",
        "if not content:",
        ("package/test_zip_reader.py::test_a_bad_entry_is_named_with_the_reason",),
    ),
    Break(
        "an entry has another name in its own header",
        "package/zip_reader.py",
        "if data[name_start : name_start + name_size] != encoded or local != declared:",
        "if local != declared:",
        ("package/test_zip_reader.py::test_a_bad_entry_is_named_with_the_reason",),
    ),
    Break(
        "an entry unpacks to more than it declares",
        "package/zip_reader.py",
        "if len(content) != entry.size:",
        "if len(content) < entry.size:",
        ("package/test_archive.py::test_a_hostile_entry_is_refused_by_name",),
    ),
    Break(
        "bytes between entries are accepted",
        "package/zip_reader.py",
        '    _check_gaps(data, sorted(entries, key=attrgetter("offset")), begin)\n',
        "",
        ("package/test_zip_reader.py::test_bytes_between_entries_are_refused",),
    ),
    Break(
        "a file is written behind a link that leads out",
        "package/files.py",
        "if not target.is_relative_to(folder):",
        "if not target.name:",
        ("package/test_files.py::test_a_file_is_written_only_below_its_folder",),
    ),
    Break(
        "a write that fails leaves its temporary file",
        "package/files.py",
        "        Path(name).unlink(missing_ok=True)\n        raise",
        "        raise",
        ("package/test_files.py::test_a_write_that_fails_leaves_nothing_behind",),
    ),
    Break(
        "a file is written in place",
        "package/files.py",
        'if os.name == "posix":\n                Path(name).replace(path)',
        'if os.name == "posix":\n                _ = [path.write_bytes(Path(name).read_bytes()), Path(name).unlink()]',
        ("package/test_files.py::test_whoever_reads_a_file_while_it_is_written_has_the_earlier_content",),
    ),
    Break(
        "a file that is too large is cut off",
        "package/files.py",
        "content = file.read(max_bytes + 1)",
        "content = file.read(max_bytes)",
        ("package/test_files.py::test_a_file_is_read_whole_or_not_at_all",),
    ),
    Break(
        "a full name leads out of its folder",
        "package/files.py",
        r'r"(?!\.)[^/\\:',
        r'r"(?!\.)[^\\:',
        ("package/test_files_convert.py::test_unsafe_full_names_have_no_path",),
    ),
)

BREAKS: Final = (*_SCORERS, *_VERDICTS, *_RUNNING, *_STORE, *_ORG, *_FILES)
