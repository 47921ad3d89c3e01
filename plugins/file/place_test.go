// SPDX-License-Identifier: Apache-2.0

package file

import (
	"log/slog"
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
)

// Positions come back from hosts, who may have got them anywhere.
func FuzzSeekPosition(f *testing.F) {
	f.Add([]byte("sequence 7"), "k")
	f.Add([]byte("timestamp 1700000000123"), "*")
	f.Add([]byte{}, "k")
	f.Add(appendPosition(nil, &reader.Record{Sequence: 7, At: reader.Place{Created: 1700000000000, Offset: 128}}), "k")
	f.Fuzz(func(t *testing.T, value []byte, name string) {
		start, record, err := seekStart(pluginapi.Position{Kind: pluginapi.PositionExact, Value: value}, name)
		switch {
		case err != nil:
		case record != nil:
			again := appendPosition(nil, &reader.Record{Sequence: record.sequence, At: record.at})
			if string(again) != string(value) || start != (reader.Start{Kind: reader.At, At: record.at}) {
				t.Errorf("%x reads as %v, %+v", value, record, start)
			}
		case start.Kind == reader.Sequence && !exact(name):
			t.Errorf("%q: %+v", name, start)
		}
	})
}

// So do the places of another process.
func FuzzResume(f *testing.F) {
	p := newPlaces(nil, slog.New(slog.DiscardHandler))
	r := &pluginapi.Registration{ID: 3, Name: "k"}
	p.moved(r, string(r.Options.JSON()), reader.Place{Created: 1700000000000, Offset: 128}, true)
	f.Add(p.close())
	f.Add([]byte(`{"3":null}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, resume []byte) {
		p := newPlaces(resume, slog.New(slog.DiscardHandler))
		r := &pluginapi.Registration{ID: 3, Name: "k"}
		if at, ok := p.of(r); ok && !at.Caught && at.start().At != (reader.Place{Created: at.Created, Offset: at.Offset}) {
			t.Errorf("%s: %+v", resume, at)
		}
		p.moved(r, "{}", reader.Place{Created: 1, Offset: 128}, false)
		if len(p.close()) == 0 {
			t.Error("nothing is handed over")
		}
	})
}
