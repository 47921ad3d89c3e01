#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# needs.sh [--install]: what the tests need beside Go, as Debian packages. It
# names the command that installs what is missing, or runs it.
set -euo pipefail
missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
command -v python3 >/dev/null || missing+=(python3)
python3 -m pip --version >/dev/null 2>&1 || python3 -c 'import ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "${1:-}" != --install ]; then
	echo "the tests need ${missing[*]}: run apt-get install ${missing[*]}" >&2
	exit 1
fi
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
export DEBIAN_FRONTEND=noninteractive
# A service that the package would start is not ours: tests start their own.
policy=/usr/sbin/policy-rc.d
ours=0
if [ ! -e "$policy" ] && [ "$(id -u)" = 0 ]; then
	ours=1
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
fi
trap '[ "$ours" = 0 ] || rm -f "$policy"' EXIT
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
