#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when generated code differs from what `make generate` writes. Of pages,
# cards and the schema, which it writes with -update of tests, the same tests say
# so without it.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
CGO_ENABLED=0 .cache/tools/buf generate -o "$made"
if ! diff -rq "$made/internal/transportpb" internal/transportpb; then
	echo "generated code is stale: commit what make generate writes" >&2
	exit 1
fi
echo "generated code is up to date"
