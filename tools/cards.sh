#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cards.sh DIR: tries each transport of docs/conformance/ from outside and writes
# its card into DIR, as JSON and as Markdown. NAME.yaml holds the settings for the
# transport NAME, NAME-WORD.yaml those of another card of it; options/ holds the
# options of subscriptions under the same names. Cards of MQTT and of Pulsar are
# made with brokers of their own.
set -euo pipefail
PATH=$PATH:/usr/sbin
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
mosquitto=
pulsar=
declare -A running=()
trap 'for p in "${!running[@]}"; do wait "$p" || true; done; for p in $mosquitto $pulsar; do kill "$p"; wait "$p" || true; done; rm -rf "$scratch"' EXIT
card() { # NAME ARGS: makes one card
	local name=$1
	shift
	bin/longshore conform "bin/longshore-transport-${name%%-*}" "$@" --card "$dir/$name.json" --card "$dir/$name.md" | tail -n 1 | sed "s/^/$name: /"
}
ended() { # waits for one of the cards, and fails as it does
	local p status=0
	wait -n -p p "${!running[@]}" || status=$?
	unset "running[$p]"
	return "$status"
}
mosquitto() { # starts Mosquitto on a port that is free and sets port
	local try
	for try in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 10000))
		printf '%s\n' "listener $port 127.0.0.1" 'allow_anonymous true' 'max_queued_messages 0' 'max_inflight_messages 0' >"$scratch/mosquitto.conf"
		command mosquitto -c "$scratch/mosquitto.conf" 2>"$scratch/mosquitto.log" &
		mosquitto=$!
		while kill -0 "$mosquitto" 2>/dev/null; do
			(: </dev/tcp/127.0.0.1/"$port") 2>/dev/null && return
			sleep 0.05
		done
	done
	cat "$scratch/mosquitto.log" >&2
	return 1
}
pulsar() { # starts a Pulsar broker and sets url
	bin/longshore-pulsar >"$scratch/pulsar" &
	pulsar=$!
	until [ -s "$scratch/pulsar" ]; do
		kill -0 "$pulsar" 2>/dev/null || return 1
		sleep 0.05
	done
	url=$(head -n 1 "$scratch/pulsar")
}
for settings in docs/conformance/*.yaml; do
	name=$(basename "$settings" .yaml)
	args=(--settings "$settings")
	options=docs/conformance/options/$name.yaml
	[ ! -f "$options" ] || args+=(--options "$options")
	if [ "${name%%-*}" = mqtt ]; then
		[ -n "$mosquitto" ] || mosquitto
		sed "s,mqtt://127.0.0.1:1883,mqtt://127.0.0.1:$port," "$settings" >"$scratch/$name.yaml"
		args[1]=$scratch/$name.yaml
		args+=(--collect 'bin/longshore-mqtt-outside collect')
	fi
	if [ "${name%%-*}" = pulsar ]; then
		[ -n "$pulsar" ] || pulsar
		sed "s,pulsar://127.0.0.1:6650,$url," "$settings" >"$scratch/$name.yaml"
		args[1]=$scratch/$name.yaml
		args+=(--collect 'bin/longshore-pulsar-outside collect')
	fi
	[ "${#running[@]}" -lt 3 ] || ended # most of what a card takes is waiting
	card "$name" "${args[@]}" &
	running[$!]=1
done
while [ "${#running[@]}" -gt 0 ]; do ended; done
