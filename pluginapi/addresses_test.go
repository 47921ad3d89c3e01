// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/transportpb"
)

// listener is a transport whose connections say where they listen.
type listener struct {
	*queueTransport
	addresses func() []string
}

func (l listener) Configure(s Settings) (Endpoint, error) {
	e, err := l.queueTransport.Configure(s)
	return listenerEndpoint{e.(queueEndpoint), l}, err
}

type listenerEndpoint struct {
	queueEndpoint
	l listener
}

func (e listenerEndpoint) Connect(ctx context.Context, resume []byte) (Conn, error) {
	c, err := e.queueEndpoint.Connect(ctx, resume)
	return listenerConn{c.(*queueConn), e.l}, err
}

type listenerConn struct {
	*queueConn
	l listener
}

func (c listenerConn) Addresses() []string { return c.l.addresses() }

func TestConnectSaysWhereItListens(t *testing.T) {
	for _, tc := range []struct {
		name      string
		addresses func() []string
		want      []string
	}{
		{"two", func() []string { return []string{"tcp://127.0.0.1:40913", "ipc:///tmp/a"} }, []string{"tcp://127.0.0.1:40913", "ipc:///tmp/a"}},
		{"none", func() []string { return nil }, nil},
		{"no text for people", func() []string { return []string{"\xff", "tcp://h:1", "a\nb"} }, []string{"tcp://h:1"}},
		{"a panic", func() []string { panic("nowhere") }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := serve(t, listener{newQueueTransport(everything()), tc.addresses})
			if _, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{}); err != nil {
				t.Fatal(err)
			}
			r, err := b.link.Connect(b.ctx, &transportpb.ConnectRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, r.GetAddresses()); d != "" {
				t.Errorf("addresses (-want +got):\n%s", d)
			}
			if string(r.GetResume()) != "connected" {
				t.Errorf("resume bytes %q", r.GetResume())
			}
		})
	}
}
