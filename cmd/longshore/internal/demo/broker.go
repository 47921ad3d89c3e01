// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"time"

	server "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// broker is an MQTT broker within the demo's own process, on a free port of this
// machine. It lets in nobody but the demo.
type broker struct {
	server  *server.Server
	address string
	secret  string // the password
}

// newBroker starts a broker.
func newBroker() (*broker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start an MQTT broker: %w", err)
	}
	b := &broker{
		server:  server.New(&server.Options{Logger: slog.New(slog.DiscardHandler)}),
		address: l.Addr().String(),
		secret:  rand.Text(),
	}
	err = b.server.AddHook(&door{secret: []byte(b.secret)}, nil)
	if err == nil {
		err = b.server.AddListener(listeners.NewNet("demo", l))
	}
	if err == nil {
		err = b.server.Serve()
	}
	if err != nil {
		_ = l.Close() // nobody uses it
		return nil, fmt.Errorf("start an MQTT broker: %w", err)
	}
	return b, nil
}

// close ends the broker and all connections.
func (b *broker) close() { _ = b.server.Close() } // it has no error to tell

// cut ends the connection of a client, as a network does that fails. The client
// may connect again.
func (b *broker) cut(client string) {
	if c, there := b.server.Clients.Get(client); there {
		c.Stop(packets.ErrUnspecifiedError)
	}
}

// endpoint attaches the broker to a host, under a client id. The broker keeps what
// a client has not acked while that is away.
func (b *broker) endpoint(h *host.Host, client string) *host.Endpoint {
	return h.Endpoint("broker", host.Plugin{Name: "mqtt"}, mqtt.Settings{
		URL: mqtt.URL("mqtt://" + b.address), ClientID: client, Username: "demo", Password: core.NewSecret(b.secret),
		CleanStart: new(false), SessionExpiry: core.Duration(time.Hour),
	})
}

// door lets in those who know the password, and lets them do everything.
type door struct {
	server.HookBase
	secret []byte
}

// ID names the hook.
func (d *door) ID() string { return "door" }

// Provides says what the hook is asked about.
func (d *door) Provides(b byte) bool {
	return bytes.Contains([]byte{server.OnConnectAuthenticate, server.OnACLCheck}, []byte{b})
}

// OnConnectAuthenticate reports whether a client may connect.
func (d *door) OnConnectAuthenticate(_ *server.Client, p packets.Packet) bool {
	return subtle.ConstantTimeCompare(p.Connect.Password, d.secret) == 1
}

// OnACLCheck reports whether a client may use a topic.
func (d *door) OnACLCheck(*server.Client, string, bool) bool { return true }
