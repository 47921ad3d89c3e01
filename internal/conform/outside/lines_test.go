// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/core"
)

func TestLines(t *testing.T) {
	const max = 8
	for name, tt := range map[string]struct {
		text string
		want []string
		bad  string
	}{
		"some":                {"a\nbc\r\n\n d \nrest", []string{"a", "bc", "d"}, ""},
		"as long as can be":   {"12345678\n12345678\n", []string{"12345678", "12345678"}, ""},
		"too long":            {"a\n123456789\nb\n", []string{"a"}, `line 2 of its output, "123456789"`},
		"too long, no end":    {"123456789", nil, `line 1 of its output`},
		"refused":             {"a\n\nno\nb\n", []string{"a"}, `line 3 of its output, "no": not that`},
		"refused and no UTF8": {"no\xff\n", nil, `line 1 of its output, "no": not that`},
	} {
		t.Run(name, func(t *testing.T) {
			for chunk := 1; chunk <= len(tt.text); chunk++ {
				var got []string
				var failed error
				l := &lines{max: max, failed: func(err error) { failed = err }, each: func(line []byte) error {
					if bytes.HasPrefix(line, []byte("no")) {
						return errors.New("not that")
					}
					got = append(got, string(line))
					return nil
				}}
				_, err := io.CopyBuffer(struct{ io.Writer }{l}, struct{ io.Reader }{strings.NewReader(tt.text)}, make([]byte, chunk))
				if !errors.Is(err, failed) || (err == nil) != (tt.bad == "") || err != nil && !strings.Contains(err.Error(), tt.bad[:min(len(tt.bad), 20)]) {
					t.Errorf("chunks of %d: got %v, said %v, want %q", chunk, err, failed, tt.bad)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("chunks of %d: lines (-want +got):\n%s", chunk, diff)
				}
			}
		})
	}
}

// Whatever a collector prints, in whatever pieces it comes, the outcome is the
// same, and a message taken from it is one that the form can hold.
func FuzzCollector(f *testing.F) {
	const ready = "{\"ready\":true}\n"
	for _, s := range []string{"", ready, "hello\n", ready + "{\"payload\":\"AAE=\",\"headers\":[[\"a\",\"\"],[\"a\",\"eA==\"]],\"name\":\"n\"}\n", ready + "{\"payload\":null}\n", ready + "\n\r\n{\"payload\":\"\"} {}\n"} {
		f.Add([]byte(s), uint8(3))
	}
	type outcome struct {
		Ready int
		Got   []core.Message
		Err   string
	}
	collect := func(text []byte, chunk int) (o outcome) {
		d := &decoder{name: "n", ready: func() { o.Ready++ }, got: func(m core.Message) { o.Got = append(o.Got, m) }}
		l := &lines{max: 256, each: d.line, failed: func(err error) { o.Err = err.Error() }}
		for len(text) > 0 && l.err == nil {
			n := min(chunk, len(text))
			_, _ = l.Write(text[:n])
			text = text[n:]
		}
		if bad := (*LineError)(nil); o.Err != "" && (!errors.As(l.err, &bad) || bad.Line == 0) {
			o.Err = "no error of a line"
		}
		if i := strings.Index(o.Err, "it is longer than"); i >= 0 { // how much of it had come differs
			o.Err = o.Err[i:]
		}
		return o
	}
	f.Fuzz(func(t *testing.T, text []byte, chunk uint8) {
		whole := collect(text, len(text))
		if diff := cmp.Diff(whole, collect(text, int(chunk)+1), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("in one piece and in pieces:\n%s", diff)
		}
		if whole.Ready > 1 || whole.Ready == 0 && len(whole.Got) > 0 {
			t.Errorf("ready %d times, %d messages", whole.Ready, len(whole.Got))
		}
		for _, m := range whole.Got {
			line, err := encode(m)
			if err != nil || !json.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
				t.Fatalf("got line %q, %v", line, err)
			}
			again := collect(append([]byte("{\"ready\":true}\n"), line...), 256)
			m.Name = "n"
			if len(line) <= 256 && !cmp.Equal([]core.Message{m}, again.Got, cmpopts.EquateEmpty()) {
				t.Errorf("message %v comes back as %v, %s", m, again.Got, again.Err)
			}
		}
	})
}
