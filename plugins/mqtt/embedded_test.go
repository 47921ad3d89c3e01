// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
)

// embedded is a server within the test, for what Mosquitto cannot play.
type embedded struct {
	t       *testing.T
	server  *mochi.Server
	address string
}

// anybody lets everybody do everything, and says in CONNACK what a test wants.
type anybody struct {
	mochi.HookBase
	connack func(*packets.Properties)
}

func (*anybody) ID() string { return "anybody" }

func (*anybody) Provides(what byte) bool {
	return what == mochi.OnConnectAuthenticate || what == mochi.OnACLCheck || what == mochi.OnPacketEncode
}

func (*anybody) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }

func (*anybody) OnACLCheck(*mochi.Client, string, bool) bool { return true }

func (a *anybody) OnPacketEncode(_ *mochi.Client, p packets.Packet) packets.Packet {
	if p.FixedHeader.Type == packets.Connack {
		a.connack(&p.Properties)
	}
	return p
}

// embed starts one, a plain one without subscription identifiers.
func embed(t *testing.T, plain bool) *embedded {
	t.Helper()
	return embedWith(t, func(p *packets.Properties) {
		if plain {
			p.SubIDAvailable, p.SubIDAvailableFlag = 0, true
		}
	})
}

// embedWith starts one whose CONNACKs are changed.
func embedWith(t *testing.T, connack func(*packets.Properties)) *embedded {
	t.Helper()
	o := &mochi.Options{InlineClient: true, Capabilities: mochi.NewDefaultServerCapabilities(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	e := &embedded{t: t, server: mochi.New(o)}
	if err := e.server.AddHook(&anybody{connack: connack}, nil); err != nil {
		t.Fatal(err)
	}
	l := listeners.NewTCP(listeners.Config{ID: "t", Address: "127.0.0.1:0"})
	if err := e.server.AddListener(l); err != nil {
		t.Fatal(err)
	}
	if err := e.server.Serve(); err != nil {
		t.Fatal(err)
	}
	e.address = l.Address()
	t.Cleanup(func() {
		if err := e.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// publish publishes at QoS 1.
func (e *embedded) publish(topic, payload string) {
	e.t.Helper()
	if err := e.server.Publish(topic, []byte(payload), false, 1); err != nil {
		e.t.Fatal(err)
	}
}

// publishUnreadable publishes at QoS 1 with a user property that is not UTF-8, which
// Mosquitto lets nobody do.
func (e *embedded) publishUnreadable(topic, payload string) {
	e.t.Helper()
	err := e.server.InjectPacket(e.server.NewClient(nil, "t", "unreadable", true), packets.Packet{
		ProtocolVersion: 5, FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: 1}, PacketID: 1,
		TopicName: topic, Payload: []byte(payload), Properties: packets.Properties{User: []packets.UserProperty{{Key: "tenant", Val: "a"}, {Key: "name", Val: "\xff"}}},
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// startError checks that a start is refused with a text that has all of texts.
func startError(t *testing.T, s *servicetest.Service, texts ...string) {
	t.Helper()
	err := s.Wait()
	if _, ok := errors.AsType[*host.StartError](err); !ok {
		t.Fatalf("the host ended with %T %v\n%s", err, err, s.Log)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not name %s", err, text)
		}
	}
}
