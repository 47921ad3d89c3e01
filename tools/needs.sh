#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# needs.sh [--install]: what the tests need beside Go, as Debian packages. It
# names the command that installs what is missing, or runs it. Then it builds or
# fetches what the tests need of other languages.
set -euo pipefail
# At least the rust-version of internal/interop/seastreamer/Cargo.toml.
rust=1.85
# What Pulsar 4.0 runs on.
java=17
missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
PATH=$PATH:/usr/sbin command -v mosquitto >/dev/null || missing+=(mosquitto)
command -v mosquitto_sub >/dev/null || missing+=(mosquitto-clients)
command -v python3 >/dev/null || missing+=(python3)
python3 -m pip --version >/dev/null 2>&1 || python3 -c 'import ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)
command -v cc >/dev/null || missing+=(gcc)
echo '#include <zmq.h>' | cc -E - >/dev/null 2>&1 || missing+=(libzmq3-dev)
/usr/bin/python3 -c 'import zmq' >/dev/null 2>&1 || missing+=(python3-zmq)
has=$(cargo --version 2>/dev/null | cut -d' ' -f2) || has=0
[ "$(printf '%s\n' "$rust" "$has" | sort -V | head -n1)" = "$rust" ] || missing+=(cargo)
has=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') || has=0
[ "${has:-0}" -ge "$java" ] || missing+=(default-jre-headless)
command -v mvn >/dev/null || missing+=(maven)
if [ ${#missing[@]} -gt 0 ]; then
	if [ "${1:-}" != --install ]; then
		echo "the tests need ${missing[*]}: run apt-get install ${missing[*]}" >&2
		case " ${missing[*]} " in
		*" cargo "*) echo "cargo must be $rust or newer: cargo-web on Debian 12, or https://rustup.rs" >&2 ;;
		esac
		case " ${missing[*]} " in
		*" default-jre-headless "*) echo "Java must be $java or newer: openjdk-$java-jre-headless where the default is older" >&2 ;;
		esac
		exit 1
	fi
	sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo)
	export DEBIAN_FRONTEND=noninteractive
	# A service that the package would start is not ours: tests start their own.
	policy=/usr/sbin/policy-rc.d
	ours=0
	if [ ! -e "$policy" ]; then
		ours=1
		printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy" >/dev/null
		"${sudo[@]}" chmod +x "$policy"
	fi
	trap '[ "$ours" = 0 ] || "${sudo[@]}" rm -f "$policy"' EXIT
	"${sudo[@]}" apt-get update -qq
	candidate=$(apt-cache policy cargo | sed -n 's/^  Candidate: //p')
	if dpkg --compare-versions "$candidate" lt "$rust"; then
		missing=("${missing[@]/#cargo/cargo-web}")
	fi
	# Its versions are as 2:1.17-74.
	candidate=$(apt-cache policy default-jre-headless | sed -n 's/^  Candidate: .*:1\.\([0-9]*\).*/\1/p')
	if [ "${candidate:-0}" -lt "$java" ]; then
		missing=("${missing[@]/#default-jre-headless/openjdk-$java-jre-headless}")
	fi
	echo "installing ${missing[*]}"
	"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
	for service in redis-server mosquitto; do
		case " ${missing[*]} " in
		# Nor is it ours at the next start of this machine.
		*" $service "*) "${sudo[@]}" systemctl disable --quiet "$service" 2>/dev/null || true ;;
		esac
	done
fi
"$(dirname "$0")/seastreamer.sh" >/dev/null
"$(dirname "$0")/pulsar.sh" >/dev/null
