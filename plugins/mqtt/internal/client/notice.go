// SPDX-License-Identifier: Apache-2.0

package client

import (
	"log/slog"
	"time"
)

// noticeEvery is how far lines of one kind are apart.
const noticeEvery = 30 * time.Second

// notice bounds the lines about what goes wrong again and again.
type notice struct {
	failing, short time.Time // when there was the last line of each kind
	attempts       int       // without a line
}

// failed tells of an attempt that failed, at once for the first and then seldom.
func (n *notice) failed(log *slog.Logger, err error) {
	n.attempts++
	if !n.failing.IsZero() && time.Since(n.failing) < noticeEvery {
		return
	}
	log.Warn("MQTT connection not made, trying again", "reason", err, "attempts", n.attempts)
	n.failing, n.attempts = time.Now(), 0
}

// reset makes the host's line about a link that is lost count as the first of them.
func (n *notice) reset() { n.failing, n.attempts = time.Now(), 0 }

// say tells of links that do not last, seldom.
func (n *notice) say(log *slog.Logger, msg string, args ...any) {
	if !n.short.IsZero() && time.Since(n.short) < noticeEvery {
		return
	}
	log.Warn(msg, args...)
	n.short = time.Now()
}
