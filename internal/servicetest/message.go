// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// Plenty is a window that no test uses up.
var Plenty = pluginapi.Room{Messages: 1000, Bytes: 1 << 30}

// Message returns an application's message; headers are names and values.
func Message(name, payload string, headers ...string) pluginapi.Outgoing {
	return pluginapi.Outgoing{
		Message: core.Message{Name: name, Payload: []byte(payload), Headers: Headers(headers...)},
		Purpose: pluginapi.PurposeApplication,
	}
}

// Headers returns headers of names and values.
func Headers(pairs ...string) core.Headers {
	var hs core.Headers
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, core.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return hs
}

// Text shows a message as "name payload header=value ...".
func Text(name string, payload []byte, headers core.Headers) string {
	text := name + " " + string(payload)
	for _, h := range headers {
		text += " " + h.Name + "=" + string(h.Value)
	}
	return text
}

// Texts shows deliveries.
func Texts(ds []pluginapi.Delivery) []string {
	var out []string
	for _, d := range ds {
		out = append(out, Text(d.Message.Name, d.Message.Payload, d.Message.Headers))
	}
	return out
}

// Publish publishes on a connection and waits for the receipts.
func Publish(ctx context.Context, tb testing.TB, c pluginapi.Conn, msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	tb.Helper()
	type indexed struct {
		i int
		r pluginapi.Receipt
	}
	receipts := make(chan indexed, len(msgs))
	c.Publish(ctx, msgs, func(i int, r pluginapi.Receipt) { receipts <- indexed{i, r} })
	rs := make([]pluginapi.Receipt, len(msgs))
	for range msgs {
		select {
		case r := <-receipts:
			rs[r.i] = r.r
		case <-ctx.Done():
			tb.Fatal("a receipt is missing")
		}
	}
	return rs
}

// Expect compares texts, "what" names them.
func Expect(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
