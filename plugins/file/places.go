// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
)

// The bounds of how often places are handed over: every placesPause and once
// more for each placesPart bytes of them. maxPlaces bounds what is handed over.
const (
	placesPause = time.Millisecond
	placesPart  = 1 << 10
	maxPlaces   = 1 << 20
)

// place is where one subscription stands.
type place struct {
	Name    string `json:"name"`
	Options string `json:"options"`
	Created int64  `json:"created"`
	Offset  int64  `json:"offset"`
	Caught  bool   `json:"caught_up,omitempty"` // it has: what came since is not for it
}

// places are where the subscriptions without a group stand, by registration. A
// start option holds for a start of the service; a process that replaces one
// that crashed goes on where that was.
type places struct {
	log *slog.Logger

	mu      sync.Mutex
	at      map[uint32]place
	keep    func([]byte)
	last    time.Time     // of the last hand-over
	pause   time.Duration // between two
	pending *time.Timer   // the next one waits
	closed  bool
	over    bool // too many to be handed over, which is said once
}

// newPlaces reads what the last process handed over.
func newPlaces(resume []byte, log *slog.Logger) *places {
	p := &places{log: log, at: make(map[uint32]place), pause: placesPause}
	if len(resume) > 0 {
		var at map[uint32]place
		if err := json.Unmarshal(resume, &at); err != nil {
			log.Warn("the places of the subscriptions are not readable; they begin anew", "error", err)
		} else if at != nil {
			p.at = at
		}
	}
	return p
}

// of returns where a registration stood.
func (p *places) of(r *pluginapi.Registration) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.at[r.ID]
	return at, ok && at.Name == r.Name && at.Options == string(r.Options.JSON())
}

// moved takes note of where a registration stands. options are its own, as
// JSON.
func (p *places) moved(r *pluginapi.Registration, options string, at reader.Place, caught bool) {
	p.mu.Lock()
	p.at[r.ID] = place{Name: r.Name, Options: options, Created: at.Created, Offset: at.Offset, Caught: caught}
	var hand []byte
	keep := p.keep
	switch wait := p.pause - time.Since(p.last); {
	case keep == nil || p.pending != nil || p.closed:
	case wait > 0:
		p.pending = time.AfterFunc(wait, p.late)
	default:
		hand = p.encode()
	}
	p.mu.Unlock()
	if hand != nil {
		keep(hand)
	}
}

// late hands over what had to wait.
func (p *places) late() {
	p.mu.Lock()
	p.pending = nil
	var hand []byte
	if !p.closed {
		hand = p.encode()
	}
	keep := p.keep
	p.mu.Unlock()
	if hand != nil {
		keep(hand)
	}
}

// encode returns what is handed over, nil where it is too much; p.mu is held.
func (p *places) encode() []byte {
	b, err := json.Marshal(p.at)
	p.last, p.pause = time.Now(), placesPause*time.Duration(1+len(b)/placesPart)
	if err == nil && len(b) <= maxPlaces {
		return b
	}
	if !p.over {
		p.over = true
		p.log.Warn("too many subscriptions to note where they stand; after a crash they begin anew", "bytes", len(b), "limit", maxPlaces)
	}
	return nil
}

// report says whom to tell.
func (p *places) report(keep func([]byte)) {
	p.mu.Lock()
	p.keep = keep
	var hand []byte
	if len(p.at) > 0 {
		hand = p.encode()
	}
	p.mu.Unlock()
	if hand != nil {
		keep(hand)
	}
}

// close ends the handing over and returns the last of it.
func (p *places) close() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.pending != nil {
		p.pending.Stop()
		p.pending = nil
	}
	if len(p.at) == 0 {
		return nil
	}
	return p.encode()
}
