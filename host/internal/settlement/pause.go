// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/internal/frame"
)

// Pause has the lane begin nothing more and takes the credit back. Handlers that
// run go on. What has arrived stays with the lane, its holds are prolonged, and
// it is begun after Resume; a stop begins what would be lost all the same.
func (l *Lane) Pause() { l.pause(true) }

// Resume ends a pause.
func (l *Lane) Resume() { l.pause(false) }

func (l *Lane) pause(on bool) {
	l.mu.Lock()
	changed := l.paused != on
	if changed {
		l.paused, l.turned = on, time.Now()
		l.regrant()
		l.rouse()
	}
	l.mu.Unlock()
	if changed {
		l.changed()
	}
}

// regrant has the credit sent anew. l.mu is held.
func (l *Lane) regrant() {
	if !l.paused && l.circuit.state != CircuitOpen {
		l.regained = time.Now()
	}
	if l.granted && l.now != nil {
		l.now.grant()
	}
}

// creditNow is the window that the plugin is to have now. l.mu is held.
func (g *generation) creditNow() frame.Credit {
	if g.l.paused || g.l.circuit.state == CircuitOpen {
		return frame.Credit{}
	}
	return g.window
}
