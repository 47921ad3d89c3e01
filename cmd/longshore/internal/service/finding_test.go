// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/host"
)

const form = `endpoints:
  in:
    transport: pipe
    stdio: true
    settings: {loopback: true, limits: {bytes: 7}}
subscriptions:
  - from: in
    name: orders
    options: {from_start: true}
    exec: {command: [cat]}
    max_attempts: 3
  - from: in
    name: orders
    forward: {to: in, name: x}
`

// load reads a service file from a text.
func load(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse("service.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Whatever a host finds is told with the line and in the words of the file.
func TestDescribe(t *testing.T) {
	f := load(t, strings.Replace(form, "    name: orders\n    forward", "    name: returns\n    forward", 1))
	for _, tt := range []struct {
		name string
		in   host.Finding
		want string
	}{
		{
			"rule", host.Finding{
				Endpoint: "in", Subscription: "orders", Option: "MaxAttempts", Message: "MaxAttempts is too high",
				Fix: "lower it, or declare DeadLetterTo", Places: []string{"service/service.go:7"},
			},
			"service.yaml:11:5: subscription orders of endpoint in: max_attempts: max_attempts is too high; lower it, or declare dead_letter",
		},
		{
			"setting that connecting found wrong", host.Finding{
				Endpoint: "in", Option: "Connect.limits.bytes", Message: "7 is below the 8 that are there", Fix: "raise it",
			},
			"service.yaml:5:41: endpoint in: settings.limits.bytes: 7 is below the 8 that are there; raise it",
		},
		{
			"option that subscribing found wrong", host.Finding{
				Endpoint: "in", Subscription: "orders", Option: "Subscription.from_start", Message: "there is no start", Fix: "leave it out",
			},
			"service.yaml:9:15: subscription orders of endpoint in: options.from_start: there is no start; leave it out",
		},
		{
			"option that the transport's inspection found wrong", host.Finding{
				Endpoint: "in", Subscription: "orders", Option: "from_start", Message: "there is no start", Fix: "leave it out",
			},
			"service.yaml:9:15: subscription orders of endpoint in: options.from_start: there is no start; leave it out",
		},
		{
			"setting that subscribing found wrong", host.Finding{
				Endpoint: "in", Subscription: "orders", Option: "Subscription.settings.limits.bytes", Message: "is too low", Fix: "use 8",
			},
			"service.yaml:5:41: subscription orders of endpoint in: settings.limits.bytes: is too low; use 8",
		},
		{
			"exit status without a dead letter", host.Finding{
				Endpoint: "in", Subscription: "orders", Option: "OnError", Message: "AsDeadLetter drops the message: there is none",
				Fix: "declare DeadLetterTo, or say AsDrop",
			},
			"service.yaml:10:5: subscription orders of endpoint in: exec.on_exit: an exit status that asks for the dead letter, as 70 does, " +
				"drops the message: there is none; declare dead_letter, or say on_exit: {70: drop}",
		},
		{
			"rule that is missing", host.Finding{
				Endpoint: "in", Subscription: "orders", Option: "RetryTo", Message: "there is no destination for copies",
				Fix: "name one with RetryTo or RetryToFunc",
			},
			"service.yaml:7:5: subscription orders of endpoint in: retry_to: there is no destination for copies; name one with retry_to",
		},
		{
			"setting", host.Finding{Endpoint: "in", Option: "settings.limits.bytes", Message: "is too low", Fix: "use 8"},
			"service.yaml:5:41: endpoint in: settings.limits.bytes: is too low; use 8",
		},
		{
			"option", host.Finding{Endpoint: "in", Subscription: "orders", Option: "options.from_start", Message: "unknown"},
			"service.yaml:9:15: subscription orders of endpoint in: options.from_start: unknown",
		},
		{
			"plugin", host.Finding{Endpoint: "in", Option: "Plugin.Checksum", Message: "differs"},
			"service.yaml:2:3: endpoint in: checksum: differs",
		},
		{
			"command", host.Finding{Endpoint: "in", Subscription: "orders", Option: optionCommand, Message: "is not there"},
			"service.yaml:10:12: subscription orders of endpoint in: exec.command: is not there",
		},
		{
			"standard input and output", host.Finding{Endpoint: "in", Option: "Plugin.Stdio", Message: "the transport needs it", Fix: "set Plugin.Stdio to &host.Stdio{}"},
			"service.yaml:4:5: endpoint in: stdio: the transport needs it; set stdio: true",
		},
		{"host", host.Finding{Message: "is broken"}, "service.yaml:1:1: host: is broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Describe(f, tt.in)); diff != "" {
				t.Errorf("description (-want +got):\n%s", diff)
			}
		})
	}
}

// What a subscription has from defaults is told where it stands.
func TestDescribeDefaults(t *testing.T) {
	f := load(t, `endpoints:
  in:
    transport: pipe
    defaults: {workers: 3}
defaults: {workers: 2, max_attempts: 3}
subscriptions:
  - {from: in, name: orders, exec: {command: [cat]}, max_elapsed: 1m}
`)
	for _, tt := range []struct {
		name string
		in   host.Finding
		want string
	}{
		{"own", host.Finding{Endpoint: "in", Subscription: "orders", Option: "MaxElapsed"}, "service.yaml:7:54: subscription orders of endpoint in: max_elapsed"},
		{"endpoint's", host.Finding{Endpoint: "in", Subscription: "orders", Option: "Workers"}, "service.yaml:4:16: subscription orders of endpoint in: workers"},
		{"file's", host.Finding{Endpoint: "in", Subscription: "orders", Option: "MaxAttempts"}, "service.yaml:5:24: subscription orders of endpoint in: max_attempts"},
		{"nobody's", host.Finding{Endpoint: "in", Subscription: "orders", Option: "RetryTo"}, "service.yaml:7:5: subscription orders of endpoint in: retry_to"},
		{"of the endpoint by itself", host.Finding{Endpoint: "in", Option: "Workers"}, "service.yaml:4:16: endpoint in: workers"},
		{"of the file by itself", host.Finding{Option: "Workers"}, "service.yaml:5:12: host: workers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Describe(f, tt.in)); diff != "" {
				t.Errorf("description (-want +got):\n%s", diff)
			}
		})
	}
}

// What a host logs at start is told in the words of the file too; all else stays
// as it is.
func TestLoggedFindings(t *testing.T) {
	var b bytes.Buffer
	plain := slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	log := slog.New(formHandler{plain}).With("endpoint", "in")
	log.Warn("a retry cannot be carried out", "code", "L-CHECK", "option", "MaxAttempts", "fix", "declare MaxAttempts, DeadLetterTo or Backoff", "place", "service/build.go:1", "n", 1)
	log.Warn("x", "code", "L-ERR", "error", "MaxAttempts")
	want := `level=WARN msg="a retry cannot be carried out" endpoint=in code=L-CHECK option=max_attempts fix="declare max_attempts, dead_letter or backoff" n=1
level=WARN msg=x endpoint=in code=L-ERR error=MaxAttempts
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
