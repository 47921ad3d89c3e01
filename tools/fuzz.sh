#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of the module for the given time each.
set -euo pipefail
time=${1:-15s}
cd "$(dirname "$0")/.."
found=0
while IFS=: read -r file name; do
	found=$((found + 1))
	echo "fuzz $(dirname "$file") $name"
	go test -run '^$' -fuzz "^${name}\$" -fuzztime "$time" "./$(dirname "$file")"
done < <(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^\./##; s#:func #:#' | sort)
[ "$found" -gt 0 ] || { echo "no fuzz target found" >&2; exit 1; }
echo "$found fuzz targets ran"
