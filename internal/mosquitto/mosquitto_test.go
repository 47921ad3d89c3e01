// SPDX-License-Identifier: Apache-2.0

package mosquitto_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/mosquitto"
)

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Everything that a message has reaches the other end, in order and as it was.
func TestMessages(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	s := b.Subscribe(2, []string{"a/#"})
	sent := mosquitto.Message{
		Topic: "a/b", Payload: []byte("x\ty\n\xff\x00"), QoS: 2, ContentType: "text/plain", ResponseTopic: "re/ply", Correlation: "c0",
		Properties: []mosquitto.Property{{Name: "B", Value: "1"}, {Name: "a", Value: "x: y z"}, {Name: "B", Value: "2"}}, Expiry: 60,
	}
	empty := mosquitto.Message{Topic: "a", Payload: []byte{}, QoS: 2}
	b.Publish(sent, empty, mosquitto.Message{Topic: "b", Payload: []byte("x"), Retain: true})
	if diff := cmp.Diff([]mosquitto.Message{sent, empty}, s.Messages(2)); diff != "" {
		t.Errorf("the messages (-want +got):\n%s", diff)
	}
	expect(t, "the rest", s.Rest())
	if m := b.Subscribe(1, []string{"b"}).Messages(1)[0]; !m.Retain {
		t.Errorf("what is retained is %+v", m)
	}
}

func TestManyWithOneClient(t *testing.T) {
	const n = 500
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	s := b.Subscribe(1, []string{"t"})
	var payloads, want []string
	for i := range n {
		payloads, want = append(payloads, fmt.Sprint(i)), append(want, fmt.Sprintf("t %d", i))
	}
	b.PublishAll(mosquitto.Message{Topic: "t", QoS: 1}, payloads...)
	expect(t, "messages", s.Rest(), want...)
}

// A session is kept over a stop, by a broker that is persistent.
func TestStartAgain(t *testing.T) {
	for _, persistent := range []bool{false, true} {
		t.Run(fmt.Sprint(persistent), func(t *testing.T) {
			b := mosquitto.Start(t, mosquitto.Config{Persistent: persistent})
			session := []string{"-i", "keeps", "-c", "-x", "600"}
			b.Subscribe(1, []string{"t"}, session...).Close()
			b.Await(1, "Client keeps ")
			b.Publish(mosquitto.Message{Topic: "t", Payload: []byte("x"), QoS: 1})
			address := b.Address()
			b.Stop()
			b.Start()
			if b.Address() != address {
				t.Errorf("it listens at %s, before at %s", b.Address(), address)
			}
			var want []string
			if persistent {
				want = []string{"t x"}
			}
			expect(t, "kept", b.Subscribe(1, []string{"t"}, session...).Rest(), want...)
			b.Kill()
			b.Start()
		})
	}
}

func TestUsersAndAccess(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{
		Users: map[string]string{"ann": "secret"}, ACL: []string{"user ann", "topic read open"}, Lines: []string{"max_keepalive 10"},
	})
	s := b.Subscribe(1, []string{"open"})
	b.Publish(mosquitto.Message{Topic: "open", Payload: []byte("x"), QoS: 1})
	expect(t, "messages", s.Rest(), "open x")
}

func TestTLS(t *testing.T) {
	for _, asks := range []bool{false, true} {
		t.Run(fmt.Sprint(asks), func(t *testing.T) {
			b := mosquitto.Start(t, mosquitto.Config{TLS: true, ClientCertificates: asks})
			if !strings.HasPrefix(b.URL(), "mqtts://127.0.0.1:") {
				t.Errorf("it listens at %s", b.URL())
			}
			s := b.Subscribe(1, []string{"t"})
			b.Publish(mosquitto.Message{Topic: "t", Payload: []byte("x"), QoS: 1})
			expect(t, "messages", s.Got(1), "t x")
		})
	}
}

// What packets a broker had from a client, and sent to it, is in its log.
func TestLog(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	s := b.Subscribe(1, []string{"t"}, "-i", "reads")
	b.Publish(mosquitto.Message{Topic: "t", Payload: []byte("x"), QoS: 1})
	s.Got(1)
	b.Await(1, "Received PUBACK from reads", "Mid: 1")
	if got := b.Lines("Sending PUBLISH to reads", "q1", "r0", "'t'"); len(got) != 1 {
		t.Errorf("%d lines tell of the message: %q", len(got), got)
	}
}
