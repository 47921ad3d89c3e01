#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pulsar.sh: fetches the jars of a Pulsar broker through Maven, once for each
# version of internal/pulsarbroker/pom.xml, outside the checkout (the kit finds
# them there), and prints their folder. Beside them it keeps an archive of the
# classes that a broker loads, made anew for another Java.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
sum() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
pom=internal/pulsarbroker/pom.xml
key=$(sum <"$pom" | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/longshore/pulsar
folder=$cache/$key
mkdir -p "$cache"
build=
trap '[ -z "$build" ] || rm -rf "$build"' EXIT
if [ ! -d "$folder/jars" ]; then
	command -v mvn >/dev/null || { echo "maven is missing: run make needs" >&2; exit 1; }
	build=$(mktemp -d "$cache/build.XXXXXX")
	echo "fetching Pulsar for the tests: 315 jars, 231 MB, about a minute" >&2
	start=$SECONDS
	cp "$pom" "$build/pom.xml"
	# Maven Central refuses or drops a request now and then.
	for try in 1 2 3; do
		if (cd "$build" && mvn -B -q dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$build/jars") >&2; then break; fi
		[ "$try" != 3 ] || { echo "Pulsar's jars could not be fetched from Maven Central: run tools/pulsar.sh again" >&2; exit 1; }
		echo "trying again" >&2
	done
	mkdir -p "$folder"
	# Who comes second has the same jars, and drops its own.
	[ -d "$folder/jars" ] || mv "$build/jars" "$folder/jars"
	echo "fetched Pulsar in $((SECONDS - start)) s" >&2
fi
java=$(java -version 2>&1)
if [ "$(cat "$folder/java" 2>/dev/null)" != "$java" ] || [ ! -f "$folder/classes.jsa" ]; then
	[ -n "$build" ] || build=$(mktemp -d "$cache/build.XXXXXX")
	echo "archiving the classes of Pulsar, about 30 s on two cores" >&2
	if CGO_ENABLED=0 "${GO:-go}" run ./internal/pulsarbroker/longshore-pulsar -archive "$build/classes.jsa" >&2 && [ -f "$build/classes.jsa" ]; then
		mv "$build/classes.jsa" "$folder/classes.jsa"
		printf '%s\n' "$java" >"$build/java"
		mv "$build/java" "$folder/java"
	else
		echo "the classes could not be archived: brokers start slower" >&2
	fi
fi
echo "$folder"
