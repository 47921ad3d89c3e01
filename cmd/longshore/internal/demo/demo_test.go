// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// The bundled lines hold what the demo needs: a few hundred airports, each once,
// and some of every kind of trouble.
func TestFeed(t *testing.T) {
	type kinds struct{ Lines, Foreign, Broken, Airports, Closed, Busy, Later, Unknown, Low int }
	var got kinds
	iata, icao := map[string]bool{}, map[string]bool{}
	for _, line := range feed() {
		got.Lines++
		if !strings.HasSuffix(line, "\n") {
			t.Errorf("line %d has no end", got.Lines)
		}
		head, payload, found := strings.Cut(line, "] ")
		if !found || !strings.Contains(head, " | "+keyAirports+" | ") {
			got.Foreign++
			continue
		}
		var a airport
		if json.Unmarshal([]byte(payload), &a) != nil {
			got.Broken++
			continue
		}
		got.Airports++
		if len(a.IATA) != 3 || len(a.ICAO) != 4 || a.ICAO[0] < 'A' || a.ICAO[0] > 'Z' || a.City == "" || len(a.Country) != 2 || a.ElevationFt>>10 >= 15 {
			t.Errorf("line %d is odd: %+v", got.Lines, a)
		}
		if iata[a.IATA] || icao[a.ICAO] {
			t.Errorf("line %d: %s is there twice", got.Lines, a.IATA)
		}
		iata[a.IATA], icao[a.ICAO] = true, true
		switch {
		case a.Closed > 0:
			got.Closed++
		case a.Country == "CA":
			got.Busy++
		case a.Country == "JP":
			got.Later++
		case a.Country == "XK":
			got.Unknown++
		case a.ElevationFt < 0:
			got.Low++
		}
	}
	want := kinds{Lines: 324, Foreign: 3, Broken: 3, Airports: 318, Closed: 8, Busy: 12, Later: 8, Unknown: 1, Low: 5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestEnter(t *testing.T) {
	r := &register{}
	for _, tt := range []struct {
		name    string
		airport airport
		attempt uint64
		want    string
		err     error
	}{
		{"open", airport{IATA: "FRA", Country: "DE", ElevationFt: 364}, 1, "acked", nil},
		{"closed", airport{IATA: "TXL", Country: "DE", Closed: 2020}, 1, "dropped", host.Drop(nil)},
		{"busy", airport{IATA: "YYZ", Country: "CA"}, 1, "retried", nil},
		{"busy no more", airport{IATA: "YYZ", Country: "CA"}, 2, "acked", nil},
		{"later", airport{IATA: "HND", Country: "JP"}, 1, "delayed", host.RetryAfter(comeBack, nil)},
		{"unknown for ever", airport{IATA: "PRN", Country: "XK"}, 3, "retried", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.enter(tt.airport, tt.attempt)
			if got != tt.want || (err == nil) != (tt.want == "acked") {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
	t.Run("below sea level", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("got no panic")
			}
		}()
		_, _ = r.enter(airport{IATA: "AMS", Country: "NL", ElevationFt: -11}, 1)
	})
}

// The towers are told of an airport once, however often it comes, and the
// connection is cut once.
func TestTowers(t *testing.T) {
	b, err := newBroker()
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	s := unseen(io.Discard)
	towers := newTowers(s, Options{Log: slog.New(slog.DiscardHandler)}, b)
	towers.runs = cutAt - 2
	for _, tt := range []struct {
		icao string
		err  error
		want counts
	}{
		{"EDDF", nil, counts{told: 1}},
		{"SAEZ", errTower, counts{told: 1, busy: 1}}, // and here it is cut
		{"EDDF", nil, counts{told: 1, busy: 1, twice: 1}},
	} {
		a := airport{IATA: tt.icao[1:], ICAO: tt.icao}
		if err := towers.handle(t.Context(), &host.Message[airport]{Value: a}); !errors.Is(err, tt.err) || s.c != tt.want {
			t.Errorf("%s: got %v and %+v, want %v and %+v", tt.icao, err, s.c, tt.err, tt.want)
		}
	}
	if s.shown["cut off"] != 1 {
		t.Errorf("cut off %d times, want once", s.shown["cut off"])
	}
}

// Nobody but the demo is let in by its broker.
func TestBrokerLetsNobodyElseIn(t *testing.T) {
	b, err := newBroker()
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for _, tt := range []struct {
		password string
		want     packets.Code
	}{{b.secret, packets.CodeSuccess}, {"guess", packets.ErrBadUsernameOrPassword}, {"", packets.ErrBadUsernameOrPassword}} {
		c, err := net.Dial("tcp", b.address)
		if err != nil {
			t.Fatal(err)
		}
		p := packets.Packet{ProtocolVersion: 5, FixedHeader: packets.FixedHeader{Type: packets.Connect}, Connect: packets.ConnectParams{
			ProtocolName: []byte("MQTT"), Clean: true, ClientIdentifier: "x", UsernameFlag: true, Username: []byte("demo"),
			PasswordFlag: tt.password != "", Password: []byte(tt.password),
		}}
		var out bytes.Buffer
		if err := p.ConnectEncode(&out); err != nil {
			t.Fatal(err)
		}
		_, err = c.Write(out.Bytes())
		var answer [4]byte
		if err == nil {
			_, err = io.ReadFull(c, answer[:])
		}
		_ = c.Close()
		if err != nil || answer[3] != tt.want.Code {
			t.Errorf("%q: got the CONNACK %x, %v; want code %x", tt.password, answer, err, tt.want.Code)
		}
	}
}

// unseen is a screen that nobody sees.
func unseen(out io.Writer) *screen {
	return newScreen(Options{Out: out, Log: slog.New(slog.DiscardHandler)}, 10)
}

func TestBalance(t *testing.T) {
	right := counts{
		fed: 10, bad: 1, undecodable: 1, first: 8, again: 3, acked: 6, retried: 1, delayed: 1, dropped: 1, panicked: 2,
		capped: 1, queued: 8, refiled: 1, copied: 1, directory: 6, dead: 1, heard: true, told: 6, busy: 1, twice: 1, read: true, before: 4, after: 2,
	}
	var out bytes.Buffer
	s := unseen(&out)
	s.c = right
	if err := s.closing(); err != nil {
		t.Errorf("got %v, want that it adds up", err)
	}
	for name, change := range map[string]func(*counts){
		"a line is lost":        func(c *counts) { c.fed++ },
		"a copy is lost":        func(c *counts) { c.again--; c.acked-- },
		"a forward is doubled":  func(c *counts) { c.directory++ },
		"a dead letter is lost": func(c *counts) { c.dead-- },
		"the queue lost one":    func(c *counts) { c.queued--; c.directory-- },
		"its copy is lost":      func(c *counts) { c.copied-- },
		"a tower missed one":    func(c *counts) { c.told-- },
		"a warning is missing":  func(c *counts) { c.capped-- },
		"one is read twice":     func(c *counts) { c.after++ },
		"one is not filed":      func(c *counts) { c.before-- },
	} {
		t.Run(name, func(t *testing.T) {
			s := unseen(io.Discard)
			s.c = right
			change(&s.c)
			var wrong *BalanceError
			if err := s.closing(); !errors.As(err, &wrong) || len(wrong.Lines) == 0 {
				t.Errorf("got %v, want a *BalanceError", err)
			}
		})
	}
}

// The second stage is waited for until it has all that the first one has sent, and
// what it tries again itself.
func TestArrived(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    counts
		want bool
	}{
		{"nothing was sent", counts{}, true},
		{"one is under way", counts{acked: 2, directory: 1}, false},
		{"a dead letter is under way", counts{acked: 1, capped: 1, directory: 1}, false},
		{"one is tried again", counts{acked: 1, capped: 1, directory: 1, dead: 1, refiled: 1}, false},
		{"all is there", counts{acked: 1, capped: 1, directory: 1, dead: 1, refiled: 1, copied: 1}, true},
	} {
		if got := tt.c.arrived(); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
	s := unseen(io.Discard)
	s.c.acked = 1
	began := time.Now()
	s.wait(t.Context(), 20*time.Millisecond, (*counts).arrived)
	if took := time.Since(began); took < 20*time.Millisecond {
		t.Errorf("what is lost was waited for %v", took)
	}
}

// Codes are read wherever they stand: in the record or in the logger.
func TestWatch(t *testing.T) {
	s := unseen(io.Discard)
	log := watch(s, Options{Log: slog.New(slog.DiscardHandler)})
	log.Warn("x", "code", "L-STREAM", "position", "line 7", "error", "no key")
	log.Warn("x", "code", "L-STREAM", "position", "line 90", "error", "no key", "since", 4)
	log.With("code", "L-DEC").Warn("x")
	log.WithGroup("g").Warn("x", "code", "L-CAP-DL")
	log.Warn("x", "code", "L-OTHER")
	log.Debug("x", "code", "L-DEC") // nobody asked for it
	want := counts{bad: 5, undecodable: 1, capped: 1}
	if s.c != want {
		t.Errorf("got %+v, want %+v", s.c, want)
	}
	var all bytes.Buffer
	log = watch(s, Options{Log: slog.New(slog.NewTextHandler(&all, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	log.With("endpoint", "pipe").WithGroup("g").Debug("seen", "a", 1)
	if !strings.Contains(all.String(), "msg=seen endpoint=pipe g.a=1") {
		t.Errorf("got %q, want what was logged", all.String())
	}
}

// Only the first events of a kind are shown, and the progress in place goes away
// before them.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := unseen(&out)
	s.live = true
	s.c.fed = 5
	s.progress()
	for i := range 4 {
		s.handled(airport{IATA: "YYZ", City: "Toronto"}, uint64(i+1), "retried", "busy")
	}
	s.bad("line 7", "no key")
	want := "  ############............   5 of 10 lines: 0 acked, 0 retried, 0 dropped, 0 panicked, 0 dead letters" +
		"\r\x1b[K  retried        YYZ Toronto, attempt 1: busy\n" +
		"  retried        YYZ Toronto, attempt 2: busy\n" +
		"  bad line       line 7: no key\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
	if s.c.first != 1 || s.c.again != 3 || s.c.retried != 4 {
		t.Errorf("got %+v", s.c)
	}
}
