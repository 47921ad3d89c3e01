// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"crypto/sha256"
	"slices"
)

// made notes the payload of a message that the case made.
func (t *Trial) made(key string, payload []byte) { t.payloads.Store(key, sha256.Sum256(payload)) }

// spoilt reports whether a payload has the key of a message that the case made
// and is another one.
func (t *Trial) spoilt(key string, payload []byte) bool {
	sum, ok := t.payloads.Load(key)
	return ok && sum != sha256.Sum256(payload)
}

// intact checks what a delivery holds of a message that the case made; the lock
// is held.
func (s *Sub) intact(d *Delivery) {
	switch t := s.t; {
	case d.Undecodable != nil || d.Key == "":
	case t.spoilt(d.Key, d.Message.Payload):
		t.Errorf("delivery %d has the key of message %s and %d bytes that are not its payload", d.ID, d.Key, len(d.Message.Payload))
	case t.About != nil && !t.About.Shared && !t.own(d.Key):
		t.Errorf("delivery %d is message %s, which was put under another name than this subscription's", d.ID, d.Key)
	}
}

// once checks that messages that were to come again came once each. Behind a
// kill, and where a hold may have ended, more is no fault.
func (s *Sub) once(old, more []*Delivery) {
	for _, d := range more {
		if d.Key == "" || hasHold(d.Caps) || rewinds(d.Caps) || !slices.ContainsFunc(old, func(o *Delivery) bool { return o.Key == d.Key }) {
			continue
		}
		if s.t.killed.Load() {
			s.t.Notef("behind a kill message %s came again more than once", d.Key)
			continue
		}
		s.t.Errorf("message %s was to come again once, and came more often: delivery %d is one too many", d.Key, d.ID)
	}
}
