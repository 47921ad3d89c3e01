#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Translates a word. Exit status 75 asks for another try, 65 drops the line.
word=$(cat)
case $word in
"") exit 65 ;;
harbour) echo "port" ;;
pier) # the dictionary is busy the first two times
	[ "$LONGSHORE_ATTEMPT" -ge 3 ] || { echo "the dictionary is busy" >&2; exit 75; }
	echo "jetty" ;;
crane) echo "hoist" ;;
*) echo "no word for $word" >&2; exit 1 ;;
esac
