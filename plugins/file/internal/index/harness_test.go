// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// counting counts the bytes that are read.
type counting struct {
	io.ReaderAt
	n int64
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}

func findTail(t testing.TB, h format.Header, file []byte) *index.Tail {
	t.Helper()
	from := &counting{ReaderAt: bytes.NewReader(file)}
	tail, err := index.FindTail(from, int64(len(file)), h)
	if err != nil {
		t.Fatal(err)
	}
	if tail.Read != from.n {
		t.Errorf("it says that it read %d bytes, it read %d", tail.Read, from.n)
	}
	if tail.End+tail.Torn > int64(len(file)) || tail.End < format.HeaderSize {
		t.Fatalf("impossible: %+v of %d bytes", tail, len(file))
	}
	return tail
}

func sample(t testing.TB, name string) (format.Header, []byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../testdata/samples", name))
	if err != nil {
		t.Fatal(err)
	}
	h, err := format.ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	return h, b
}

// several builds a file with n records on each of the keys, in turns.
func several(interval uint32, n, payload int, keys ...string) *formattest.Builder {
	b := formattest.New(interval)
	b.Prime()
	for range n {
		for _, k := range keys {
			b.Add(k, strings.Repeat("x", payload))
		}
	}
	return b
}

// states is what Keys must be where each record was read.
func states(b *formattest.Builder) map[string]index.KeyState {
	out := map[string]index.KeyState{}
	for _, r := range b.Records {
		if r.Key != format.EndKey {
			out[r.Key] = index.KeyState{Sequence: r.Sequence, Time: r.Time, Checksum: format.Checksum(r.Payload)}
		}
	}
	return out
}

// withoutChecksums are the states without what differs between a record that
// was read and one that a beacon names.
func withoutChecksums(in map[string]index.KeyState) map[string]index.KeyState {
	out := map[string]index.KeyState{}
	for k, s := range in {
		s.Checksum = 0
		out[k] = s
	}
	return out
}
