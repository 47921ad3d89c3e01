// SPDX-License-Identifier: Apache-2.0

package client

import (
	"log/slog"
	"time"
)

// noticeEvery is how far lines about failed attempts are apart.
const noticeEvery = 30 * time.Second

// notice bounds the lines about failed attempts.
type notice struct {
	last  time.Time
	since int // attempts without a line
}

// failed tells of an attempt that failed, at once for the first and then seldom.
func (n *notice) failed(log *slog.Logger, err error) {
	n.since++
	if !n.last.IsZero() && time.Since(n.last) < noticeEvery {
		return
	}
	log.Warn("MQTT connection not made, trying again", "reason", err, "attempts", n.since)
	n.last, n.since = time.Now(), 0
}

// reset makes the line about a link that is lost count as the first of them.
func (n *notice) reset() { n.last, n.since = time.Now(), 0 }
