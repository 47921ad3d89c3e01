// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"testing"
)

// Header is the header of a file.
type Header struct {
	Name     string `json:"name"`
	Created  int64  `json:"created"` // ms since the epoch
	Interval uint32 `json:"interval"`
}

// Beacon is a beacon of a file.
type Beacon struct {
	Number    uint32   `json:"beacon"` // it stands at Number × Interval
	Remaining uint32   `json:"remaining"`
	Markers   []Marker `json:"markers"`
}

// Marker is an entry of a beacon.
type Marker struct {
	Key      string `json:"key"`
	Shard    uint64 `json:"shard"`
	Sequence uint64 `json:"sequence"`
	Time     int64  `json:"time"`
	Checksum uint16 `json:"checksum"`
}

// WriteOptions tune the client's writer.
type WriteOptions struct {
	Interval uint32 // of a new file, the client's own when 0
	EndMark  bool
	Limit    uint64 // of the file's bytes, the client's own when 0
}

// Write appends records, of which keys and payloads count, by the client's
// producer and returns them with the heads that it gave them.
func Write(tb testing.TB, path string, o WriteOptions, records ...Record) []Record {
	tb.Helper()
	args := []string{"write", path}
	if o.Interval > 0 {
		args = append(args, "--beacon", fmt.Sprint(o.Interval))
	}
	if o.Limit > 0 {
		args = append(args, "--limit", strconv.FormatUint(o.Limit, 10))
	}
	if o.EndMark {
		args = append(args, "--eos")
	}
	var in bytes.Buffer
	for _, r := range records {
		fmt.Fprintf(&in, "%s %x\n", r.Key, []byte(r.Payload))
	}
	lines := run(tb, in.Bytes(), args...)
	if len(lines) != len(records) {
		tb.Fatalf("the SeaStreamer client confirmed %d of %d records", len(lines), len(records))
	}
	out := make([]Record, len(lines))
	for i, l := range lines {
		out[i] = l.Record
		out[i].Payload = records[i].Payload
	}
	return out
}

// Replay reads by the client's consumer from the beginning to where that ends.
// Further arguments are --key, and --sequence or --time to seek to.
func Replay(tb testing.TB, path string, args ...string) ([]Record, End) {
	tb.Helper()
	lines := run(tb, nil, append([]string{"replay", path}, args...)...)
	records := make([]Record, 0, len(lines))
	for _, l := range lines[:len(lines)-1] {
		records = append(records, l.Record)
	}
	return records, lines[len(lines)-1].End
}

// Content is a file as the client's parser sees it.
type Content struct {
	Header  Header
	Records []Record // end marks and what stands behind them too
	Beacons []Beacon
	End     End
}

// Dump takes a whole file apart by the client's parser.
func Dump(tb testing.TB, path string) Content {
	tb.Helper()
	lines := run(tb, nil, "dump", path)
	c := Content{Header: lines[0].Header, End: lines[len(lines)-1].End}
	for _, l := range lines[1 : len(lines)-1] {
		if l.Number > 0 {
			c.Beacons = append(c.Beacons, l.Beacon)
		} else {
			c.Records = append(c.Records, l.Record)
		}
	}
	return c
}

// Follower is the client's live consumer in a process of its own.
type Follower struct {
	tb    testing.TB
	lines *bufio.Scanner
}

// Follow starts the client's live consumer, which ends with the test. Its place
// in the file, the end unless there is an argument --beginning, is fixed when
// Follow returns.
func Follow(tb testing.TB, path string, args ...string) *Follower {
	tb.Helper()
	legal(tb, path)
	cmd := exec.Command(Program(tb), append([]string{"tail", path}, args...)...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start the SeaStreamer client: %v", err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if tb.Failed() && log.Len() > 0 {
			tb.Logf("the SeaStreamer client says:\n%s", &log)
		}
	})
	f := &Follower{tb: tb, lines: bufio.NewScanner(out)}
	f.lines.Buffer(nil, longestLine)
	if l := f.next(); !l.Ready {
		tb.Fatalf("the SeaStreamer client does not follow %s: %s", path, l.Error)
	}
	return f
}

func (f *Follower) next() line {
	f.tb.Helper()
	if !f.lines.Scan() {
		f.tb.Fatalf("the SeaStreamer client ended: %v", f.lines.Err())
	}
	l, err := parse(f.lines.Bytes())
	if err != nil {
		f.tb.Fatal(err)
	}
	return l
}

// Next waits for the next record, or for the end.
func (f *Follower) Next() (Record, *End) {
	f.tb.Helper()
	l := f.next()
	if l.Why != "" {
		return Record{}, &l.End
	}
	return l.Record, nil
}
