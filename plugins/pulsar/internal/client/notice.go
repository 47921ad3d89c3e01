// SPDX-License-Identifier: Apache-2.0

package client

import (
	"log/slog"
	"time"
)

// noticeEvery is how far lines about failed tries are apart.
const noticeEvery = 30 * time.Second

// notice bounds the lines about tries that fail again and again.
type notice struct {
	last  time.Time // when there was a line
	tries int       // without a line
}

// failed tells of a try that failed, at once for the first and then seldom.
func (n *notice) failed(log *slog.Logger, err error) {
	n.tries++
	if !n.last.IsZero() && time.Since(n.last) < noticeEvery {
		return
	}
	log.Warn("Pulsar connection not made, trying again", "reason", line(err.Error()), "tries", n.tries)
	n.last, n.tries = time.Now(), 0
}

// reset makes the host's line about a connection that is lost count as the first.
func (n *notice) reset() { n.last, n.tries = time.Now(), 0 }
