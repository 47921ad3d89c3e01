// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// keeping pings the server until the link has ended. A PINGREQ leaves when for three
// quarters of the keep-alive time nothing was written, for the server's sake
// [MQTT-3.1.2-20], or nothing was read: a server that is gone takes what
// is written for a long time. If then nothing comes, of whatever kind, within half
// of it, the link is lost.
func (l *Link) keeping() {
	every := time.Duration(l.limits.KeepAlive) * time.Second
	idle := int64(every - every/4)
	answer := int64(max(every/2, l.times.answer))
	timer := time.NewTimer(0)
	defer timer.Stop()
	var pinged int64 // when, since the link began
	waits := false   // for an answer
	for {
		select {
		case <-timer.C:
		case <-l.done:
			return
		}
		now := l.since()
		if waits && l.lastRead.Load() >= pinged {
			waits = false
		}
		if waits && now-pinged >= answer {
			l.lose(fmt.Errorf("no answer to a ping within %v", time.Duration(answer)))
			return
		}
		due := max(min(l.lastRead.Load(), l.lastWrite.Load()), pinged) + idle
		if waits {
			due = min(due, pinged+answer)
		} else if now >= due {
			l.Write(packet.AppendPing)
			pinged, waits = now, true
			due = now + min(idle, answer)
		}
		timer.Reset(time.Duration(max(due-now, int64(time.Millisecond))))
	}
}
