#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs without the race detector the tests that are left out under it: those in
# files with the build tag !race, and those that skip where raceEnabled says so.
set -euo pipefail
cd "$(dirname "$0")/.."
list=$(grep -rlE --include='*_test.go' '^//go:build !race$|raceEnabled' . | sort | xargs awk '
	FNR == 1 { all = asked = 0; test = ""; folder = FILENAME; sub(/\/[^\/]*$/, "", folder) }
	/^\/\/go:build !race$/ { all = 1 }
	/^func / { test = match($0, /^func Test[A-Za-z0-9_]+\(t /) ? substr($0, 6, index($0, "(") - 6) : "" }
	test != "" && (all || asked && /t\.Skip/) { print folder, test; test = "" }
	{ asked = /raceEnabled/ }')
[ -n "$list" ] || { echo "no test that the race detector leaves out found" >&2; exit 1; }
mapfile -t folders < <(cut -d ' ' -f 1 <<<"$list" | sort -u)
"${GO:-go}" test -vet=off -timeout 10m -run "^($(cut -d ' ' -f 2 <<<"$list" | sort -u | paste -sd '|'))\$" "${folders[@]}"
