// SPDX-License-Identifier: Apache-2.0

package mosquitto

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Message is a message as the far ends see it.
type Message struct {
	Topic         string
	Payload       []byte
	QoS           int
	Retain        bool
	ContentType   string
	ResponseTopic string
	Correlation   string
	Properties    []Property // the user properties, in order
	Expiry        uint32     // seconds, 0 = none
	Text          bool       // the payload format indicator is 1; not published
}

// Property is a user property.
type Property struct{ Name, Value string }

// String shows a message as "topic payload name=value ...", with content-type,
// reply-to and correlation-id before the user properties.
func (m Message) String() string {
	text := m.Topic + " " + string(m.Payload)
	for _, p := range append([]Property{
		{"content-type", m.ContentType}, {"reply-to", m.ResponseTopic}, {"correlation-id", m.Correlation},
	}, m.Properties...) {
		if p.Value != "" {
			text += " " + p.Name + "=" + p.Value
		}
	}
	return text
}

// args are the arguments of mosquitto_pub.
func (m Message) args() []string {
	args := []string{"-t", m.Topic, "-q", fmt.Sprint(m.QoS)}
	if m.Retain {
		args = append(args, "-r")
	}
	property := func(words ...string) { args = append(append(args, "-D", "publish"), words...) }
	for name, value := range map[string]string{"content-type": m.ContentType, "response-topic": m.ResponseTopic, "correlation-data": m.Correlation} {
		if value != "" {
			property(name, value)
		}
	}
	for _, p := range m.Properties {
		property("user-property", p.Name, p.Value)
	}
	if m.Expiry > 0 {
		property("message-expiry-interval", fmt.Sprint(m.Expiry))
	}
	return args
}

// Publish publishes messages with mosquitto_pub, one process each, which has its
// PUBACK or PUBCOMP when it returns.
func (b *Broker) Publish(ms ...Message) {
	b.tb.Helper()
	for _, m := range ms {
		how := "-s"
		if len(m.Payload) == 0 {
			how = "-n"
		}
		b.pub(m.Payload, append(m.args(), how)...)
	}
}

// PublishAll publishes payloads without line ends with one mosquitto_pub, in
// order; the last of them is on the broker when it returns.
func (b *Broker) PublishAll(m Message, payloads ...string) {
	b.tb.Helper()
	b.pub([]byte(strings.Join(payloads, "\n")), append(m.args(), "-l")...)
}

func (b *Broker) pub(stdin []byte, args ...string) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(b.tb, "mosquitto_pub"), append(b.client(b.name("pub")), args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.tb.Fatalf("mosquitto_pub %s: %v: %s\n%s", strings.Join(args, " "), err, out, b.log)
	}
}
