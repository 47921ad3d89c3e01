#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when generated files differ from what `make generate` writes.
set -euo pipefail
cd "$(dirname "$0")/.."
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
paths=(internal/transportpb docs/settlement docs/conformance cmd/longshore)
cp -r --parents "${paths[@]}" "$before"
make -s generate >"$before/log" 2>&1 || { cat "$before/log" >&2; exit 1; }
stale=0
for p in "${paths[@]}"; do
	diff -rq "$before/$p" "$p" || stale=1
done
[ "$stale" = 0 ] || { echo "generated files were stale: commit what make generate wrote" >&2; exit 1; }
echo "generated files are up to date"
