// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/internal/memory"
)

// What a report shows at most: a screen full, and of a payload what makes it
// known again.
const (
	shownQueues   = 16
	shownMessages = 12
	shownPayload  = 48
)

// Report says where every message of the broker is, for people. A wait that
// fails shows it.
func (b *Broker) Report() string { return b.report() }

func (b *Broker) report() string {
	var text strings.Builder
	b.mu.Lock()
	services := append([]*Service(nil), b.services...)
	b.mu.Unlock()
	if len(services) == 0 {
		text.WriteString("  no host was started on this broker with Start\n")
	} else {
		fmt.Fprintf(&text, "  %s\n", services[len(services)-1].state())
	}
	b.view(func(v memory.View) {
		names := v.Names()
		for i, name := range names {
			if i == shownQueues {
				fmt.Fprintf(&text, "  and %d queues more\n", len(names)-i)
				break
			}
			writeQueue(&text, v, name)
		}
	})
	return strings.TrimSuffix(text.String(), "\n")
}

func writeQueue(text *strings.Builder, v memory.View, name string) {
	all := v.All(name)
	reads := "nobody reads it"
	if n := v.Subscriptions(name); n > 0 {
		reads = "read by " + count(n, "subscription")
	}
	fmt.Fprintf(text, "  %q, %s: %s\n", name, reads, count(len(all), "message"))
	from := max(len(all)-shownMessages, 0)
	if from > 0 {
		fmt.Fprintf(text, "    %d before these\n", from)
	}
	for i := range all[from:] {
		s := &all[from+i]
		by := ""
		if s.By != "" {
			by = ", published by " + s.By
		}
		fmt.Fprintf(text, "    %d %s: %s%s\n", fromMemory(s.Message).ID, excerpt(s.Payload), place(s, v.Subscriptions(name) > 0), by)
	}
}

// place says where a message is.
func place(s *memory.Settlement, read bool) string {
	text := s.State.String()
	switch {
	case s.State == memory.Queued && s.Waits:
		text = "queued, and waits for its time"
	case s.State == memory.Queued && read:
		text = "queued; the host has not asked for it"
	case s.State == memory.Outstanding && s.Astray:
		text = "lost on the way on the test's command, and unsettled"
	case s.State == memory.Outstanding && s.Forgotten:
		text = "unsettled, and no verdict comes any more"
	case s.State == memory.Outstanding:
		text = "delivered, and there is no verdict yet"
	case s.Reason != "":
		text += ": " + s.Reason
	}
	if s.Deliveries > 1 {
		text += fmt.Sprintf(" (delivered %d times)", s.Deliveries)
	}
	return text
}

// excerpt is the start of a payload.
func excerpt(p []byte) string {
	s := string(p)
	if !utf8.ValidString(s) {
		return fmt.Sprintf("%d bytes", len(p))
	}
	if r := []rune(s); len(r) > shownPayload {
		return strconv.Quote(string(r[:shownPayload])) + "..."
	}
	return strconv.Quote(s)
}
