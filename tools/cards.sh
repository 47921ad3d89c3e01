#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cards.sh DIR: tries each transport of docs/conformance/ from outside and writes
# its card into DIR, as JSON and as Markdown. NAME.yaml holds the settings for the
# transport NAME, NAME-WORD.yaml those of another card of it; options/ holds the
# options of subscriptions under the same names.
set -euo pipefail
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
for settings in docs/conformance/*.yaml; do
	name=$(basename "$settings" .yaml)
	args=(--settings "$settings")
	options=docs/conformance/options/$name.yaml
	[ ! -f "$options" ] || args+=(--options "$options")
	bin/longshore conform "bin/longshore-transport-${name%%-*}" "${args[@]}" --card "$dir/$name.json" --card "$dir/$name.md" | tail -n 1 | sed "s/^/$name: /"
done
