// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func roundTripCases() []Case {
	requests := func(a *About) string {
		if !a.Describe.GetRequests() {
			return "Describe does not announce requests"
		}
		return a.writes()
	}
	seeks := func(a *About) string {
		if !a.Describe.GetSeeks() {
			return "Describe does not announce seeks"
		}
		return a.reads()
	}
	return []Case{
		{
			ID: "copy/address", Section: sectionCapabilities,
			Claim:   "A copy that is published to the reported address comes back once, with its count exact, and so does a copy of that copy.",
			Applies: applies(reads, writes, with("an address of its own", hasAddress)), Needs: feeds, Run: copyAddress,
		},
		{
			ID: "copy/carry", Section: sectionPublishing,
			Claim:   "The carry of a delivery is taken on copies and dead letters that stem from it.",
			Applies: applies(reads, writes, with("an address of its own", hasAddress)), Needs: feeds, Run: copyCarry,
		},
		{
			ID: "request/reply", Section: sectionCalls,
			Claim:   "A request that is answered returns the reply, and several at once each return their own.",
			Applies: requests, Needs: echoes, Run: requestReply,
		},
		{
			ID: "request/timeout", Section: sectionCalls,
			Claim:   "A request that nobody answers fails at its timeout, and as TIMEOUT or UNAVAILABLE.",
			Applies: requests, Run: requestTimeout,
		},
		{
			ID: "seek/positions", Section: sectionSeek,
			Claim:   "Seek to the beginning and to the position of a delivery delivers from there on, and what was delivered before is void.",
			Applies: seeks, Needs: feeds, Run: seekPositions,
		},
		{
			ID: "seek/refused", Section: sectionSeek,
			Claim:   "A position that makes no sense is refused, and the subscription goes on where it was.",
			Applies: seeks, Needs: feeds, Run: seekRefused,
		},
	}
}

// countHeader is the header in which copies count (reference 1.4).
const countHeader = "x-ruststream-retry-count"

// copyAddress does what the runtime does with a retry, twice.
func copyAddress(t *Trial) {
	if t.About.Publishing.Headers == core.HeadersNone {
		t.Skipf("headers do not travel to the destination, so no copy can be counted")
	}
	p := t.Connected()
	s := p.Subscribe()
	key := t.Feed(p, 1)[0]
	d := s.Next()
	own := core.Header{Name: "x-own", Value: []byte("kept")}
	roomy := t.About.Publishing.MaxHeaders != 1
	for round := 1; round <= 2; round++ {
		if d.Key != key {
			t.Fatalf("delivery %d is not the message that was fed or copied", d.ID)
		}
		m := core.Message{Name: d.Caps.Address, Payload: d.Message.Payload}
		m.Headers = core.Headers{{Name: countHeader, Value: []byte(strconv.Itoa(round))}}
		if roomy {
			m.Headers = append(core.Headers{own}, m.Headers...)
		}
		p.Publisher().Confirmed(frame.Outgoing{
			Message: m, Purpose: uint8(transportpb.Purpose_PURPOSE_RETRY), Carry: d.Carry,
		})
		s.Finish(d)
		next := s.Next()
		if count, bad := next.Message.Headers.Count(); bad || count != uint64(round) {
			t.Errorf("copy %d came back with the count %d and the headers %q", round, count, next.Message.Headers)
		}
		if v, ok := next.Message.Headers.Get(own.Name); roomy && !ok || ok && !bytes.Equal(v, own.Value) {
			t.Errorf("copy %d came back without its own header", round)
		}
		if !bytes.Equal(next.Message.Payload, d.Message.Payload) {
			t.Errorf("copy %d came back with another payload", round)
		}
		d = next
	}
	s.Finish(d)
	for _, more := range s.Within(t.Subject.Quiet) {
		t.doubled("delivery %d came though every copy had come back: %s", more.ID, more.Key)
	}
	s.Barrier()
	s.End()
	p.Close()
}

// copyCarry sends what a delivery carried along, for every purpose that a host
// has copies for.
func copyCarry(t *Trial) {
	p := t.Connected()
	s := p.Subscribe()
	t.Feed(p, 1)
	d := s.Next()
	s.Finish(d)
	var keys []string
	for _, purpose := range []transportpb.Purpose{
		transportpb.Purpose_PURPOSE_RETRY, transportpb.Purpose_PURPOSE_DEAD_LETTER, transportpb.Purpose_PURPOSE_REPLY, transportpb.Purpose_PURPOSE_UNSPECIFIED,
	} {
		m := t.Messages(d.Caps.Address, 1, 0)[0]
		p.Publisher().Confirmed(frame.Outgoing{Message: m, Purpose: uint8(purpose), Carry: d.Carry})
		keys = append(keys, keyOf(m.Payload))
	}
	first, more := s.TakeKeys(keys)
	for _, d := range first {
		s.Finish(d)
	}
	for _, d := range more {
		t.doubled("delivery %d came beside the copies: %s", d.ID, d.Key)
	}
	s.Barrier()
	s.End()
	p.Close()
}

// echoes says what a request needs to be answered.
func echoes(a *About) string {
	if a.Subject.Echo == "" {
		return "the name of a destination that answers each request with its payload"
	}
	return ""
}

// request makes one request and returns what comes of it.
func (p *Process) request(m core.Message, timeout time.Duration) (*transportpb.RequestResponse, error) {
	ctx, cancel := p.t.limited()
	defer cancel()
	hs := make([]*transportpb.Header, len(m.Headers))
	for i, h := range m.Headers {
		hs[i] = &transportpb.Header{Name: h.Name, Value: h.Value}
	}
	return p.link.Request(ctx, &transportpb.RequestRequest{Timeout: int64(timeout), Outgoing: &transportpb.Outgoing{
		Name: m.Name, Payload: m.Payload, Headers: hs, Purpose: transportpb.Purpose_PURPOSE_APPLICATION, Options: p.t.Send,
	}})
}

// requestReply makes requests at once; each has to return its own payload.
func requestReply(t *Trial) {
	const n = 8
	p := t.Connected()
	var wait sync.WaitGroup
	for _, m := range t.Messages(t.fill(t.Subject.Echo), n, 0) {
		wait.Go(func() {
			r, err := p.request(m, t.Subject.Wait/2)
			if err != nil {
				t.Errorf("the request %s failed: %v", keyOf(m.Payload), err)
			} else if got := r.GetReply().GetPayload(); !bytes.Equal(got, m.Payload) {
				t.Errorf("the request %s returned another payload: %.80q", keyOf(m.Payload), got)
			}
		})
	}
	wait.Wait()
	p.Close()
}

func requestTimeout(t *Trial) {
	const timeout = 300 * time.Millisecond
	p := t.Connected()
	begun := time.Now()
	m := t.Messages(t.Destination()+"-nobody", 1, 0)[0]
	_, err := p.request(m, timeout)
	took := time.Since(begun)
	switch fault := link.AsFault(err); {
	case err == nil:
		t.Errorf("a request that nobody answers returned a reply")
	case fault.Code == core.FaultUnsupported: // what Describe announces is the widest that any endpoint can do
		t.Skipf("with these settings the plugin has no requests")
	case fault.Code != core.FaultTimeout && fault.Code != core.FaultUnavailable && fault.Code != core.FaultNotFound:
		t.Errorf("a request that nobody answers failed with %v, not with TIMEOUT", fault)
	case took > timeout+t.Subject.Late:
		t.Errorf("a request with a timeout of %v failed after %v", timeout, took)
	}
	p.Close()
}

// seek moves the subscription and returns the answer.
func (s *Sub) seek(to *transportpb.Seek) *transportpb.Sought {
	s.mu.Lock()
	before := len(s.soughts)
	s.mu.Unlock()
	s.request(&frame.SubscribeRequest{Seek: to})
	if !s.until(func() bool { return len(s.soughts) > before || s.over }) {
		s.t.Fatalf("seek was not answered within %v", s.t.Subject.Wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.soughts) == before {
		s.t.Fatalf("the stream ended in place of an answer to seek: %v", s.err)
	}
	return s.soughts[before]
}

func seekPositions(t *Trial) {
	const n = 10
	p := t.Connected()
	s := p.Subscribe()
	keys := t.Feed(p, n)
	ds := s.Take(n)
	s.Barrier()
	for _, to := range []struct {
		seek *transportpb.Seek
		from int
	}{
		{&transportpb.Seek{Kind: transportpb.PositionKind_POSITION_KIND_BEGINNING}, 0},
		{&transportpb.Seek{Kind: transportpb.PositionKind_POSITION_KIND_EXACT, Value: ds[n/2].Position}, n / 2},
	} {
		if to.seek.Kind == transportpb.PositionKind_POSITION_KIND_EXACT && len(to.seek.Value) == 0 {
			t.Errorf("Describe announces seeks, and deliveries have no position")
			break
		}
		sought := s.seek(to.seek)
		if f := sought.GetFault(); f != nil {
			t.Errorf("seek to %v was refused: %s", to.seek.Kind, f.GetMessage())
			continue
		}
		again := s.Take(n - to.from)
		for i, d := range again {
			if d.ID < sought.GetNext() {
				t.Errorf("delivery %d came behind sought, which says that the new position begins at %d", d.ID, sought.GetNext())
			}
			if d.Key != keys[to.from+i] {
				t.Errorf("behind seek to %v came %s in place of %s", to.seek.Kind, d.Key, keys[to.from+i])
			}
		}
		if r := s.Verdict(ds[0], core.VerdictRelease); r != frame.SettleStale {
			t.Errorf("a delivery from before the seek was answered %s, not STALE", statusWord(r))
		}
		ds = append([]*Delivery(nil), again...)
		for len(ds) < n { // by position in keys
			ds = append([]*Delivery{nil}, ds...)
		}
		if to.from > 0 {
			ds[0] = again[0]
		}
	}
	s.End()
	p.Close()
}

func seekRefused(t *Trial) {
	const n = 4
	p := t.Connected()
	s := p.Subscribe()
	keys := t.Feed(p, n)
	first := s.Take(1)
	for _, to := range []*transportpb.Seek{
		{Kind: transportpb.PositionKind_POSITION_KIND_EXACT, Value: []byte("no position of this transport")},
		{},
	} {
		if s.seek(to).GetFault() == nil {
			t.Errorf("seek to %v %q was not refused", to.Kind, to.Value)
		}
	}
	rest := s.Take(n - 1)
	for i, d := range rest {
		if d.Key != keys[i+1] {
			t.Errorf("behind a refused seek came %s in place of %s", d.Key, keys[i+1])
		}
	}
	s.Finish(first...)
	s.Finish(rest...)
	s.Barrier()
	s.End()
	p.Close()
}
