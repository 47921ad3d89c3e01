// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/internal/bench/source"
)

// The ways of the rows of stream files, beside Hop.
const (
	File  = "file"        // the plugin of stream files
	Alone = "file, alone" // its reader and writer in this process, without SDK and host
)

// The kinds of rows of stream files.
const (
	Replay = "replay" // all of a file
	Tail   = "tail"   // what the same endpoint writes at the same time
	Write  = "write"
)

// FileRow is one row of stream files.
type FileRow struct {
	Kind    string `json:"kind"`
	Payload int    `json:"payload"`
	Headers int    `json:"headers"`
	Group   bool   `json:"group,omitempty"` // acked, with the position kept
	Fsync   string `json:"fsync"`
	Open    int    `json:"open"` // messages without verdict or receipt at most
}

// String names the row.
func (r FileRow) String() string {
	text := fmt.Sprintf("%-6s %5d B + %d", r.Kind, r.Payload, r.Headers)
	switch {
	case r.Group:
		return text + "  group"
	case r.Kind == Write && r.Open == 1:
		return text + "  fsync " + r.Fsync + ", one at a time"
	case r.Kind == Write:
		return text + "  fsync " + r.Fsync
	}
	return text
}

// large is a payload that no frame holds many of.
const large = 16 << 10

// FileRows are the rows of stream files.
func FileRows() []FileRow {
	rows := []FileRow{
		{Kind: Replay, Payload: Base.Payload, Headers: Base.Headers},
		{Kind: Replay, Payload: Base.Payload},
		{Kind: Replay, Payload: large},
		{Kind: Replay, Payload: Base.Payload, Headers: Base.Headers, Group: true},
		{Kind: Tail, Payload: Base.Payload, Headers: Base.Headers},
	}
	for _, fsync := range []string{"none", "interval", "each"} {
		for _, payload := range []int{Base.Payload, large} {
			for _, open := range []int{Base.Window, 1} {
				rows = append(rows, FileRow{Kind: Write, Payload: payload, Fsync: fsync, Open: open})
			}
		}
	}
	for i := range rows {
		if rows[i].Kind != Write {
			rows[i].Fsync, rows[i].Open = "none", Base.Window
		}
	}
	return rows
}

// hop is the row of the hop that a row is compared with.
func (r FileRow) hop() Row {
	return Row{Frame: Base.Frame, Window: r.Open, Payload: r.Payload, Headers: r.Headers}
}

// options are the messages of a row.
func (r FileRow) options() source.Options {
	return source.Options{Payload: r.Payload, Headers: r.Headers}
}

// FilePlan says how stream files are measured.
type FilePlan struct {
	Plugin string        // the plugin's file, "" = not measured
	Folder string        // where files are, "" = that of temporary files
	Bytes  int           // of payload in a file that is replayed
	Time   time.Duration // of one measurement of writing
}
