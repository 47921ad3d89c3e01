#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh DIR makes DIR/longshore-transport-sqlite: installs what requirements.txt
# names below DIR, generates the protocol's code there, and writes the launcher.
# What is up to date stays as it is.
set -eu

fail() {
	echo "setup.sh: $*" >&2
	exit 1
}

[ $# -eq 1 ] || fail "give one folder: setup.sh DIR"
here=$(cd "$(dirname "$0")" && pwd)
proto=${LONGSHORE_PROTO:-$here/../../pluginapi/proto}
transport=longshore/transport/v1/transport.proto
python=${PYTHON:-python3}

[ -f "$proto/$transport" ] || fail "$proto/$transport is not there; set LONGSHORE_PROTO to the folder of the protocol"
command -v "$python" >/dev/null || fail "$python is not there; install it (Debian, Ubuntu: apt-get install python3 python3-venv)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
	fail "$("$python" -V) is too old; install Python 3.10 or newer, or set PYTHON to one"
"$python" -c 'import sqlite3' || fail "$python has no module sqlite3; install a Python that has it"

mkdir -p "$1"
dir=$(cd "$1" && pwd)
python=$("$python" -c 'import sys; print(sys.executable)') # not a script that looks for it
stamp=$(cat "$here/requirements.txt" "$here/setup.sh" "$proto/$transport" | cksum; echo "$python $("$python" -V) $here")
if [ -x "$dir/longshore-transport-sqlite" ] && [ "$(cat "$dir/stamp")" = "$stamp" ]; then
	exit 0
fi

# Packages go into a folder of their own, by whichever pip there is: Debian's
# Python has none, nor one in its virtual environments, until it is installed.
work=$(mktemp -d "$dir/setup.XXXXXX")
trap 'rm -rf "$work"' EXIT
pip=$python
if ! "$pip" -m pip --version >/dev/null 2>&1; then
	"$python" -m venv "$work/venv" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		fail "$python has neither pip nor venv; install one (Debian, Ubuntu: apt-get install python3-venv)"
	}
	pip=$work/venv/bin/python
fi
"$pip" -m pip install --quiet --disable-pip-version-check --no-input --root-user-action ignore --target "$work/lib" -r "$here/requirements.txt" ||
	fail "pip cannot install what $here/requirements.txt names; its reason stands above"
PYTHONPATH=$work/lib "$python" -m grpc_tools.protoc -I "$proto" --python_out="$work/lib" --grpc_python_out="$work/lib" "$transport"

# One executable file with the plugin's name. Signals are ignored before Python
# runs; exec leaves one process, so the leash and the signals are Python's.
cat >"$work/launcher" <<EOF
#!/bin/sh
trap '' INT TERM HUP PIPE
PYTHONPATH='$dir/lib' exec '$python' '$here/sqlite_transport.py' "\$@"
EOF
chmod +x "$work/launcher"
rm -rf "$dir/lib"
mv "$work/lib" "$dir/lib"
mv "$work/launcher" "$dir/longshore-transport-sqlite"
printf '%s\n' "$stamp" >"$dir/stamp"
