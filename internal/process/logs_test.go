// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLogBridge(t *testing.T) {
	long := strings.Repeat("l", 100<<10)
	tests := []struct {
		name string
		line string
		want map[string]any // nil = nothing is logged
	}{
		{
			"a record", `{"@level":"warn","@message":"slow","@module":"mqtt","@timestamp":"2026-11-30T08:00:00.000001Z","n":3,"f":1.5,"big":123456789012345678901234567890,"o":{"a":1},"t":true}`,
			map[string]any{"level": "WARN", "msg": "slow", "module": "mqtt", "time": "2026-11-30T08:00:00.000001Z", "n": 3.0, "f": 1.5, "big": 1.2345678901234568e+29, "o": map[string]any{"a": 1.0}, "t": true},
		},
		{"a long record", `{"@level":"info","@message":"` + long + `"}`, map[string]any{"level": "INFO", "msg": long}},
		{"below the level", `{"@level":"trace","@message":"x"}`, nil},
		{"no record", `{"level":"info","message":"x"}`, map[string]any{"level": "WARN", "msg": "plugin prints", "line": `{"level":"info","message":"x"}`}},
		{"an unknown level", `{"@level":"loud","@message":"x"}`, map[string]any{"level": "WARN", "msg": "plugin prints", "line": `{"@level":"loud","@message":"x"}`}},
		{"broken JSON", `{"@level":"info","@message":"x"`, map[string]any{"level": "WARN", "msg": "plugin prints", "line": `{"@level":"info","@message":"x"`}},
		{"text", "hello \xff world", map[string]any{"level": "WARN", "msg": "plugin prints", "line": "hello \ufffd world"}},
		{"long text", strings.Repeat("t", 5000), map[string]any{"level": "WARN", "msg": "plugin prints", "line": strings.Repeat("t", otherLimit), "bytes": 5000.0}},
		{"a panic", "panic: runtime error", map[string]any{"level": "ERROR", "msg": "plugin panics", "line": "panic: runtime error"}},
		{"nothing", "  ", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			newLogs(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))).stderr([]byte(tt.line))
			var got map[string]any
			if b.Len() > 0 {
				if err := json.Unmarshal(b.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok := tt.want["time"]; !ok && got != nil {
				delete(got, "time")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

// A plugin cannot flood the log, and what was dropped is told.
func TestOtherLinesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := newLogs(slog.New(slog.NewTextHandler(&b, nil)))
		for i := range 10_000 {
			l.stderr(fmt.Appendf(nil, "line %d", i))
		}
		if n := strings.Count(b.String(), "\n"); n != otherBurst {
			t.Errorf("%d lines at once", n)
		}
		b.Reset()
		time.Sleep(3 * time.Second)
		for range 10 {
			l.stderr([]byte("later"))
		}
		if n := strings.Count(b.String(), "\n"); n != 3 || !strings.Contains(b.String(), "dropped=9980") {
			t.Errorf("%d lines three seconds later:\n%s", n, b.String())
		}
		if got := l.tail.lines(); len(got) != tailLines {
			t.Errorf("%d lines kept", len(got))
		}
	})
}

// A stack is longer than what is kept; its beginning is what tells.
func TestPanicIsKept(t *testing.T) {
	l := newLogs(slog.New(slog.DiscardHandler))
	l.stderr([]byte(`{"@level":"info","@message":"before","n":1}`))
	l.stderr([]byte("panic: lost my mind"))
	for i := range 100 {
		l.stderr(fmt.Appendf(nil, "frame %d", i))
	}
	got := l.tail.lines()
	if got[0] != "panic: lost my mind" || got[1] != "frame 0" || got[len(got)-1] != "frame 99" || len(got) > 2*tailLines {
		t.Errorf("got %q", got)
	}
}

func TestEachLine(t *testing.T) {
	huge := strings.Repeat("h", lineLimit)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one", "a\n", []string{"a"}},
		{"without an end", "a\nb", []string{"a", "b"}},
		{"empty ones", "\n\r\n\n", []string{"", "", ""}},
		{"carriage returns", "a\r\nb\r\n", []string{"a", "b"}},
		{"too long", huge + "tail\nnext\n", []string{huge, "tail", "next"}},
		{"100 KiB", strings.Repeat("k", 100<<10) + "\nnext", []string{strings.Repeat("k", 100<<10), "next"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			eachLine(strings.NewReader(tt.in), func(line []byte) { got = append(got, string(line)) })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error("lines differ")
			}
			got = nil
			w := &lineWriter{line: func(line []byte) { got = append(got, string(line)) }}
			for in := []byte(tt.in); len(in) > 0; {
				n := min(len(in), 1000)
				if _, err := w.Write(in[:n]); err != nil {
					t.Fatal(err)
				}
				in = in[n:]
			}
			if len(w.rest) > 0 {
				got = append(got, string(w.rest))
			}
			if tt.name != "carriage returns" && tt.name != "empty ones" && tt.name != "too long" && cmp.Diff(tt.want, got) != "" {
				t.Error("written lines differ")
			}
		})
	}
}

// What is in a pipe whose end does not come is read, and no more than it holds.
func TestPipeReaderBehindItsDeadline(t *testing.T) {
	lines := func(r *os.File) (n int) {
		if err := r.SetReadDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		eachLine(&pipeReader{f: r}, func([]byte) { n++ })
		return n
	}
	r, w := pipe(t)
	if n := lines(r); n != 0 {
		t.Errorf("%d lines in an empty pipe", n)
	}
	if _, err := w.WriteString(strings.Repeat("last words\n", 1000)); err != nil {
		t.Fatal(err)
	}
	if n := lines(r); n != 1000 {
		t.Errorf("%d lines of 1000", n)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := w.WriteString("more\n"); err == nil; _, err = w.WriteString("more\n") {
		}
	}()
	if n := lines(r); n > 2*pipeRoom/len("more\n") {
		t.Errorf("%d lines of an endless writer", n)
	}
	_ = r.Close()
	<-ended
}

func FuzzParseRecord(f *testing.F) {
	for _, s := range []string{`{"@level":"info","@message":"x","k":[1,{"a":null}]}`, `{}`, `{"@level":1}`, `[`, `{"a"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if r, ok := parseRecord(line); ok && (!bytes.Contains(line, []byte("@level")) && !bytes.Contains(line, []byte(`\u`)) || r.at.IsZero()) {
			t.Errorf("%q is taken for a record", line)
		}
		newLogs(slog.New(slog.DiscardHandler)).stderr(line)
	})
}
