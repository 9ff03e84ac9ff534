#!/usr/bin/env bash
# The typical workflow on a fresh copy of metadata-samples: validate, deploy, retrieve, list and run.
set -euo pipefail
rm -rf .demo
cp -R metadata-samples .demo
cd .demo
for command in "validate" "deploy --manifest package.xml" "retrieve" "test list" "test run --wait"; do
  printf '\n$ evalmeta %s\n' "$command"
  # shellcheck disable=SC2086 # the words of a command
  evalmeta $command
done
cd agent-script
for command in "deploy" "run specs"; do
  printf '\n$ evalmeta %s\n' "$command"
  # shellcheck disable=SC2086 # the words of a command
  evalmeta $command
done
