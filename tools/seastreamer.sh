#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# seastreamer.sh: builds the SeaStreamer client for tests of interoperability,
# once for each version of its sources, outside the checkout (Build in
# internal/interop finds it there), and prints its path.
set -euo pipefail
cd "$(dirname "$0")/../internal/interop/seastreamer"
export LC_ALL=C
sum() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
key=$(cat Cargo.toml Cargo.lock src/*.rs | sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/longshore/seastreamer
program=$cache/$key/longshore-seastreamer
if [ ! -x "$program" ]; then
	echo "building the SeaStreamer client, about 20 s on two cores" >&2
	mkdir -p "$cache/$key"
	build=$(mktemp -d "$cache/$key/build.XXXXXX")
	trap 'rm -rf "$build"' EXIT
	cargo build --locked --target-dir "$build" >&2
	mv "$build/debug/longshore-seastreamer" "$program"
fi
echo "$program"
