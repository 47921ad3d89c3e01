// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/outbox"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// A session that is abandoned does not wait for the answers to what it has
// published: on another connection it would take itself from the next who begins
// with it. One that is closed does.
func TestAbandoned_L_01(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	for abandoned, want := range map[bool]struct {
		connections int
		status      pluginapi.ReceiptStatus
	}{true: {1, pluginapi.ReceiptUnknown}, false: {2, pluginapi.ReceiptConfirmed}} {
		p := proxy.Start(t, b.Address())
		address, _, err := client.ParseAddress(p.URL())
		if err != nil {
			t.Fatal(err)
		}
		s := New(Config{Kept: true, Client: client.Config{
			Address: address, Connect: packet.ConnectParams{ClientID: "shop", SessionExpiry: 3600, KeepAlive: 60},
		}})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Stall(proxy.ToClient)
		receipts := make(chan pluginapi.Receipt, 1)
		s.Outbox().Add(&outbox.Post{
			Message: core.Message{Name: "jobs", Payload: []byte("x")}, QoS: 1,
			Done: func(_ int, r pluginapi.Receipt) { receipts <- r },
		})
		s.Outbox().Flush()
		p.Await(proxy.ToServer, proxy.Publish, 1)
		closed := make(chan error, 1)
		go func() { closed <- s.Close(t.Context(), abandoned) }()
		if abandoned {
			p.Await(proxy.ToServer, proxy.Disconnect, 1)
		}
		p.Cut()
		p.Resume()
		if r := <-receipts; r.Status != want.status {
			t.Errorf("abandoned %t: receipt %+v", abandoned, r)
		}
		if err := <-closed; err != nil {
			t.Errorf("abandoned %t: %v", abandoned, err)
		}
		if n := p.Accepted(); n != want.connections {
			t.Errorf("abandoned %t: %d connections", abandoned, n)
		}
	}
}
