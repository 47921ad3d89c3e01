// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/internal/handshake"
)

// passedOn returns the names of the host's environment that every plugin gets:
// where things are, who runs it, language, time zone and trust. Everything
// else, proxies and credentials above all, is passed on by name only.
func passedOn() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "TMPDIR",
		"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_TIME", "LC_NUMERIC", "LC_COLLATE",
		"TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}

// Environ is the environment in which Start executes a plugin, for who executes
// one by other means: named are names passed on, start what the start needs.
func Environ(named, start []string, runDir string) []string {
	return environ(named, start, runDir, false)
}

// environ is a plugin's environment: the allow-list, the names passed on, then
// what the start itself needs. Of a name given twice the last one counts.
func environ(named, start []string, runDir string, stdio bool) []string {
	var env []string
	for _, name := range append(passedOn(), named...) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, start...)
	env = append(env, handshake.EnvRunDir+"="+runDir)
	if stdio {
		env = append(env, handshake.EnvStdio+"=1")
	}

	// A C library reads the first of two, a Go program the last.
	seen := map[string]bool{}
	var once []string
	for _, entry := range slices.Backward(env) {
		name, _, _ := strings.Cut(entry, "=")
		if !seen[name] {
			seen[name] = true
			once = append(once, entry)
		}
	}
	slices.Reverse(once)
	return once
}
