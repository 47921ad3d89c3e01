// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// session are the packets of one direction of the reference's session: a shared
// subscription, a capped retry, a dead letter.
func session(t *testing.T, direction string) []packet.Packet {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "session-"+direction+".bin"))
	if err != nil {
		t.Fatal(err)
	}
	r := packet.NewReader(bytes.NewReader(b), 0)
	var all []packet.Packet
	for {
		var p packet.Packet
		ok, err := r.Next(&p)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			p.Body = bytes.Clone(p.Body)
			all = append(all, p)
			continue
		}
		if err := r.Fill(); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// whole is a packet as it stands on the wire.
func whole(p *packet.Packet) []byte {
	return append([]byte{p.Type<<4 | p.Flags, byte(len(p.Body))}, p.Body...)
}

// decode reads a PUBLISH.
func decode(t *testing.T, p *packet.Packet) (packet.Publish, core.Message) {
	t.Helper()
	var pub packet.Publish
	if err := packet.ParsePublish(p, &pub); err != nil {
		t.Fatal(err)
	}
	var d message.Decoder
	var m core.Message
	if f := d.Decode(&pub, &m); f != nil {
		t.Fatal(f)
	}
	return pub, m
}

// The reference's session is read, and its client's packets are written byte by
// byte as it did: the copy with its count, and the dead letter.
func TestSampleSession(t *testing.T) {
	client, broker := session(t, "client"), session(t, "broker")
	names := func(all []packet.Packet) (names []string) {
		for i := range all {
			names = append(names, packet.Name(all[i].Type))
		}
		return names
	}
	if diff := cmp.Diff([]string{"CONNECT", "SUBSCRIBE", "PUBACK", "PUBLISH", "PUBACK", "PUBLISH", "DISCONNECT"}, names(client)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"CONNACK", "SUBACK", "PUBLISH", "PUBLISH", "PUBACK", "PUBACK"}, names(broker)); diff != "" {
		t.Fatal(diff)
	}
	connect, err := packet.AppendConnect(nil, &packet.ConnectParams{
		ClientID: "peer-sub", CleanStart: true, KeepAlive: 60, ReceiveMaximum: 1000, MaxPacket: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	subscribe, err := packet.AppendSubscribe(nil, 1, 0, []packet.Subscription{{Filter: "$share/g1/dev/2/t", QoS: 1}})
	if err != nil {
		t.Fatal(err)
	}
	tenant, text := core.Header{Name: "x-tenant", Value: []byte("acme")}, core.Header{Name: "content-type", Value: []byte("text/plain")}
	count := func(n string) core.Header {
		return core.Header{Name: "x-ruststream-retry-count", Value: []byte(n)}
	}
	first := core.Message{Name: "dev/2/t", Headers: core.Headers{tenant, text}, Payload: []byte("job")}
	again := core.Message{Name: "dev/2/t", Headers: core.Headers{tenant, count("1"), text}, Payload: []byte("job")}
	dead := core.Message{Name: "dead/t", Headers: core.Headers{tenant, count("2"), text}, Payload: []byte("job")}
	for i, want := range [][]byte{
		connect, subscribe, packet.AppendAck(nil, packet.TypePuback, 1, 0),
		message.Append(nil, &again, &message.Params{QoS: 1, ID: 2}),
		packet.AppendAck(nil, packet.TypePuback, 2, 0),
		message.Append(nil, &dead, &message.Params{QoS: 1, ID: 3}),
		packet.AppendDisconnect(nil, packet.CodeSuccess),
	} {
		if diff := cmp.Diff(whole(&client[i]), want); diff != "" {
			t.Errorf("%s: %s", packet.Name(client[i].Type), diff)
		}
	}
	for i, want := range map[int]core.Message{2: first, 3: again} {
		if pub, got := decode(t, &broker[i]); !cmp.Equal(want, got) || pub.QoS != 1 || int(pub.ID) != i-1 {
			t.Errorf("%+v: %s", pub, cmp.Diff(want, got))
		}
	}
}
