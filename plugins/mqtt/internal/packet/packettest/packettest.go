// SPDX-License-Identifier: Apache-2.0

// Package packettest writes packets as a server does, for tests.
package packettest

import "github.com/longshore-go/longshore/plugins/mqtt/internal/packet"

// Append appends a PUBLISH, the inverse of packet.ParsePublish.
func Append(dst []byte, p *packet.Publish) []byte {
	h := packet.Head{QoS: p.QoS, Dup: p.Dup, Retain: p.Retain, ID: p.ID, Topic: string(p.Topic)}
	dst = packet.AppendPublishHead(dst, &h, len(p.Properties), len(p.Payload))
	dst = append(dst, p.Properties...)
	return append(dst, p.Payload...)
}
