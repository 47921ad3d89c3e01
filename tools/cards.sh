#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cards.sh DIR: tries each transport of docs/conformance/ from outside and writes
# its card into DIR, as JSON and as Markdown.
set -euo pipefail
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
for settings in docs/conformance/*.yaml; do
	name=$(basename "$settings" .yaml)
	bin/longshore conform "bin/longshore-transport-$name" --settings "$settings" --card "$dir/$name.json" --card "$dir/$name.md" | tail -n 1 | sed "s/^/$name: /"
done
