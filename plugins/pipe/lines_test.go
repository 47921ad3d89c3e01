// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

// pieces is an input that comes in pieces of given sizes, over and over.
type pieces struct {
	data  []byte
	sizes []byte
	n     int
}

func (p *pieces) Read(_ context.Context, b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	size := len(p.data)
	if len(p.sizes) > 0 {
		size = min(size, int(p.sizes[p.n%len(p.sizes)])+1)
		p.n++
	}
	n := copy(b, p.data[:size])
	p.data = p.data[n:]
	return n, nil
}

// readAll cuts data as it comes in pieces.
func readAll(t *testing.T, data, sizes []byte, limit int) []rawLine {
	t.Helper()
	in := &pieces{data: data, sizes: sizes}
	l := lines{limit: limit}
	var got []rawLine
	for {
		raw, ok := l.next()
		switch {
		case ok:
			got = append(got, raw)
		case l.eof:
			return got
		default:
			if err := l.fill(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// want is what cutting data at line breaks gives.
func want(data []byte, limit int) []rawLine {
	var lines []rawLine
	for text := range bytes.Lines(data) {
		text = bytes.TrimSuffix(text, []byte("\n"))
		r := rawLine{number: uint64(len(lines) + 1), text: text}
		if len(text) > limit {
			r.text, r.tooBig = nil, int64(len(text))
		} else if r.number == 1 && bytes.HasPrefix(text, []byte(byteOrderMark+"[")) {
			r.text = text[len(byteOrderMark):]
		}
		lines = append(lines, r)
	}
	return lines
}

func checkLines(t *testing.T, data, sizes []byte, limit int) {
	t.Helper()
	got := readAll(t, bytes.Clone(data), sizes, limit)
	if slices.EqualFunc(want(data, limit), got, func(a, b rawLine) bool {
		return a.number == b.number && a.tooBig == b.tooBig && bytes.Equal(a.text, b.text)
	}) {
		return // many lines take long to compare one by one
	}
	if diff := cmp.Diff(want(data, limit), got, cmp.AllowUnexported(rawLine{}), cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("limit %d, pieces of %v: %s", limit, sizes, diff)
	}
}

func TestLinesInPieces(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000) // beyond three chunks
	for name, data := range map[string]string{
		"nothing":         "",
		"one":             "a\n",
		"no last break":   "a\nb",
		"empty ones":      "\n\na\n\n",
		"a mark":          byteOrderMark + "[a] b\n" + byteOrderMark + "[c] d\n",
		"long":            "a\n" + long + "\nb\n" + long,
		"long, then more": long + "\n" + strings.Repeat("short\n", 30_000),
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{5, 100, 1 << 20} {
				for _, sizes := range [][]byte{nil, {0}, {3, 200, 7}} {
					if len(sizes) == 1 && len(data) > 1000 {
						continue // takes long and shows nothing more
					}
					checkLines(t, []byte(data), sizes, limit)
				}
			}
		})
	}
}

// A line that was given out is never written again.
func TestLinesKeepTheirMemory(t *testing.T) {
	var data bytes.Buffer
	for i := range 50_000 {
		data.WriteString(strings.Repeat(string(rune('a'+i%26)), i%97))
		data.WriteByte('\n')
	}
	raw := bytes.Clone(data.Bytes())
	for i, l := range readAll(t, raw, []byte{255, 3, 90}, 1<<20) {
		if len(l.text) != i%97 || len(bytes.Trim(l.text, string(rune('a'+i%26)))) != 0 {
			t.Fatalf("line %d is %q", i+1, l.text)
		}
		if cap(l.text) != len(l.text) {
			t.Fatalf("line %d can be appended to", i+1)
		}
	}
}

func TestReadErrorIsPassedOn(t *testing.T) {
	broken := errors.New("broken")
	l := lines{limit: 10}
	if err := l.fill(t.Context(), failing{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read(context.Context, []byte) (int, error) { return 0, f.err }

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb":                         `"a\nb"`,
		strings.Repeat("x", 61):        `"` + strings.Repeat("x", 60) + `..."`,
		strings.Repeat("x", 59) + "äb": `"` + strings.Repeat("x", 59) + `..."`,
		"\xff":                         `"\xff"`,
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestNumbersForgetTheOldest(t *testing.T) {
	var n numbers
	n.next("first")
	for i := range maxNumbered {
		n.next("key" + strconv.Itoa(i))
	}
	if got := len(n.upcoming); got > maxNumbered {
		t.Errorf("%d keys", got)
	}
	if got := n.next("first"); got != 0 {
		t.Errorf("first goes on at %d", got)
	}
}

// seedLines adds the lines of the sample and the forms of reference 3.3.
func seedLines(f *testing.F) {
	f.Helper()
	sample, err := os.ReadFile("testdata/stdio.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(sample)) {
		f.Add([]byte(strings.TrimSuffix(line, "\n")))
	}
	for _, line := range []string{
		"", "x", "[orders] x", "[ts.sss | orders | 8 | 2] x", "[2023-11-14T22:13:20.5 | orders | 7] x", "[]", "[", "[1]", `["a"]`,
		"[orders | +1 | 007]", "[|]", "\xef\xbb\xbf[k] x",
	} {
		f.Add([]byte(line))
	}
}

// A line is payload as it stands, or says what can be written again in the same
// words.
func FuzzParseLine(f *testing.F) {
	seedLines(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		l, err := parseLine(in)
		if err != nil {
			if !bytes.HasPrefix(in, []byte{'['}) || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("%q: %v", in, err)
			}
			return
		}
		if l.key == nil && l.when.IsZero() {
			if !bytes.Equal(l.payload, in) {
				t.Errorf("%q became payload %q", in, l.payload)
			}
			return
		}
		if l.key != nil && !streamkey.Valid(l.key) || l.numbered && l.key == nil {
			t.Errorf("%q: key %q, numbered %v", in, l.key, l.numbered)
		}
		if !bytes.HasSuffix(in, l.payload) {
			t.Errorf("%q: payload %q", in, l.payload)
		}
		if !l.when.IsZero() && (l.when.Location() != time.UTC || l.when.Year() > 9999) {
			t.Errorf("%q: time %v", in, l.when)
		}
	})
}

// However an input comes in pieces, it is cut alike.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), []byte{1}, uint16(2))
	f.Add([]byte(byteOrderMark+"[k] x\n"), []byte{0, 5}, uint16(100))
	f.Fuzz(func(t *testing.T, data, sizes []byte, limit uint16) {
		checkLines(t, data, sizes, int(limit)+1)
	})
}
