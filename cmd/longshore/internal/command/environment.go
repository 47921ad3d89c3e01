// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// What the environment holds besides that of this process. A header's name is
// written in upper case, with _ for everything but letters and digits.
const (
	envHeader       = "LONGSHORE_HEADER_"
	envName         = "LONGSHORE_NAME"
	envAttempt      = "LONGSHORE_ATTEMPT"
	envEndpoint     = "LONGSHORE_ENDPOINT"
	envSubscription = "LONGSHORE_SUBSCRIPTION"
	envLeftOut      = "LONGSHORE_HEADERS_LEFT_OUT"
)

// Limits of the headers in an environment: a text of it can have 128 KiB on
// Linux, and it shares what the system allows with the arguments.
const (
	maxHeader  = 64 << 10
	maxHeaders = 512 << 10
)

// environment returns the environment of a command, and the names of headers
// that it cannot hold: those with a zero byte or above the limits. Of several
// headers with one name the last counts.
func environment(own []string, in Input) (env, left []string) {
	for _, e := range own {
		name, _, _ := strings.Cut(e, "=")
		stale := name == envName || name == envAttempt || name == envEndpoint || name == envSubscription || name == envLeftOut
		if !stale && !strings.HasPrefix(name, envHeader) {
			env = append(env, e)
		}
	}
	env = append(env,
		envName+"="+strings.ReplaceAll(in.Message.Name, "\x00", ""),
		envAttempt+"="+strconv.FormatUint(in.Attempt, 10),
		envEndpoint+"="+in.Endpoint,
		envSubscription+"="+in.Subscription,
	)
	headers, total := map[string]string{}, 0
	for _, h := range slices.Backward(in.Message.Headers) {
		name := envHeader + variable(h.Name)
		if _, later := headers[name]; later {
			continue
		}
		size := len(name) + len(h.Value)
		if bytes.IndexByte(h.Value, 0) >= 0 || size > maxHeader || total+size > maxHeaders {
			left = append(left, h.Name)
			continue
		}
		headers[name] = string(h.Value)
		total += size
	}
	for name, value := range headers {
		env = append(env, name+"="+value)
	}
	if len(left) > 0 {
		slices.Reverse(left)
		list := strings.ReplaceAll(strings.Join(left, ","), "\x00", "")
		env = append(env, envLeftOut+"="+list[:min(len(list), maxHeader)])
	}
	return env, left
}

// variable turns a header's name into that of a variable.
func variable(header string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, header)
}
