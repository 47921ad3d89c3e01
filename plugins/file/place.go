// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// A position is a version, the creation time of the record's file, the record's
// offset there, and its sequence. A position may also be the text of a start,
// such as "sequence 7".
const (
	positionVersion = 1
	positionLen     = 1 + 3*8
)

// recordAt is where one record stands.
type recordAt struct {
	at       reader.Place
	sequence uint64
}

func appendPosition(dst []byte, r *reader.Record) []byte {
	dst = append(dst, positionVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.At.Created))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.At.Offset))
	return binary.BigEndian.AppendUint64(dst, r.Sequence)
}

// parsePosition reads what appendPosition wrote.
func parsePosition(b []byte) (recordAt, bool) {
	if len(b) != positionLen || b[0] != positionVersion {
		return recordAt{}, false
	}
	p := recordAt{
		at: reader.Place{
			Created: int64(binary.BigEndian.Uint64(b[1:])),
			Offset:  int64(binary.BigEndian.Uint64(b[9:])),
		},
		sequence: binary.BigEndian.Uint64(b[17:]),
	}
	return p, p.at.Created >= 0 && p.at.Offset >= 0
}

// startOf turns a start of the settings into the reader's. otherwise is what the
// default means.
func startOf(s settings.Start, otherwise reader.StartKind) reader.Start {
	switch s.Kind() {
	case settings.StartBeginning:
		return reader.Start{Kind: reader.Beginning}
	case settings.StartEnd:
		return reader.Start{Kind: reader.End}
	case settings.StartSequence:
		return reader.Start{Kind: reader.Sequence, Sequence: s.Number()}
	case settings.StartTime:
		return reader.Start{Kind: reader.Time, Time: s.Millis()}
	default:
		return reader.Start{Kind: otherwise}
	}
}

// seekStart turns a position to seek to into a start, and says which record a
// former delivery's position names, to be looked at before.
func seekStart(to pluginapi.Position, name string) (reader.Start, *recordAt, error) {
	switch to.Kind {
	case pluginapi.PositionBeginning:
		return reader.Start{Kind: reader.Beginning}, nil, nil
	case pluginapi.PositionEnd:
		return reader.Start{Kind: reader.End}, nil, nil
	case pluginapi.PositionTime:
		return reader.Start{Kind: reader.Time, Time: to.Time.UnixMilli()}, nil, nil
	}
	if p, ok := parsePosition(to.Value); ok {
		return reader.Start{Kind: reader.At, At: p.at}, &p, nil
	}
	s, err := settings.ParseStart(string(to.Value))
	switch {
	case err != nil:
		return reader.Start{}, nil, badPosition("it is neither the position of a delivery nor a start", "use the position of a delivery, or a start such as \"sequence 7\"")
	case s.Kind() == settings.StartSequence && !exact(name):
		return reader.Start{}, nil, badPosition("a sequence counts the records of one key, and "+shown(name)+" reads several", "seek to a time")
	}
	return startOf(s, reader.Beginning), nil, nil
}

// badPosition is the fault of a position that nothing can be read from.
func badPosition(message, fix string) *core.Fault {
	return &core.Fault{
		Code:        core.FaultInvalid,
		Message:     "seek",
		Diagnostics: []core.Diagnostic{{Path: "position", Message: message, Fix: fix}},
	}
}

// String shows it to people.
func (p recordAt) String() string {
	return fmt.Sprintf("sequence %d at offset %d", p.sequence, p.at.Offset)
}
