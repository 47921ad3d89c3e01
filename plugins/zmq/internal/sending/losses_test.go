// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
)

// However many subscribers leave at once, there is one line a second, which says
// of how many, and what they all have missed.
func TestLossesOfManyThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l losses
		var lines []string
		leave := func(n int, untold uint64, lost int) {
			for i := range n {
				s := &subscriber{peer: &peering.Peer{Remote: fmt.Sprint("peer ", i)}, untold: untold, dropped: untold}
				if line := l.leave(s, lost, peering.ErrLeft); line.text != "" {
					lines = append(lines, fmt.Sprintln(line.args...))
				}
			}
		}
		leave(5, 0, 0) // they have missed nothing
		leave(100, 2, 1)
		time.Sleep(lossPause) // of the bubble
		leave(1, 0, 7)
		if len(lines) != 2 || !strings.Contains(lines[0], "times 1 missed 3") || !strings.Contains(lines[1], "times 100 missed 304") {
			t.Errorf("logged %q", lines)
		}
		if l.lost != 107 {
			t.Errorf("%d lost", l.lost)
		}
	})
}
