// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// The ways of the rows of ZeroMQ.
const (
	ZMQ      = "zmq"              // host and plugin, as they are by default
	ZMQWide  = "zmq, window 1024" // with that window
	ZMQAlone = "zmq, alone"       // the transport in one process, without SDK and host
	ZMQ4     = "zmq4"             // a socket of go-zeromq/zmq4 in one process
	LibZMQ   = "libzmq"           // a socket of libzmq in one process
)

// The kinds of rows of ZeroMQ; what is measured is at the other end of a peer
// that uses libzmq, or that sends as our transport does.
const (
	Pull   = "pull"    // reads from a PUSH
	Push   = "push"    // writes to a PULL; what has arrived counts
	FanOut = "pub"     // writes to subscribers; what has arrived counts
	Ask    = "request" // one after another, answered by a ROUTER
)

// ZeroMQRow is one row of ZeroMQ.
type ZeroMQRow struct {
	Kind    string `json:"kind"`
	Link    string `json:"link"` // tcp or ipc
	Payload int    `json:"payload"`
	Headers int    `json:"headers"`
	Peer    string `json:"peer"`              // LibZMQ or ZMQAlone
	Readers int    `json:"readers,omitempty"` // subscribers of FanOut
}

// String names the row.
func (r ZeroMQRow) String() string {
	text := fmt.Sprintf("%-7s %s %5d B + %d", r.Kind, r.Link, r.Payload, r.Headers)
	switch {
	case r.Kind == FanOut:
		return fmt.Sprintf("%s  to %d", text, r.Readers)
	case r.Peer != LibZMQ:
		return text + "  from " + r.Peer
	}
	return text
}

// ZeroMQRows are the rows of ZeroMQ whose text a regular expression matches, ""
// for all.
func ZeroMQRows(match string) ([]ZeroMQRow, error) {
	of, err := regexp.Compile(match)
	if err != nil {
		return nil, fmt.Errorf("choose rows of ZeroMQ: %w", err)
	}
	return slices.DeleteFunc(zeroMQRows(), func(r ZeroMQRow) bool { return !of.MatchString(r.String()) }), nil
}

// zeroMQRows are all of them.
func zeroMQRows() []ZeroMQRow {
	var rows []ZeroMQRow
	for _, kind := range []string{Pull, Push} {
		for _, on := range []string{"tcp", "ipc"} {
			rows = append(rows,
				ZeroMQRow{Kind: kind, Link: on, Payload: 64},
				ZeroMQRow{Kind: kind, Link: on, Payload: Base.Payload},
				ZeroMQRow{Kind: kind, Link: on, Payload: Base.Payload, Headers: Base.Headers},
				ZeroMQRow{Kind: kind, Link: on, Payload: large})
			if kind == Pull {
				rows = append(rows, ZeroMQRow{Kind: kind, Link: on, Payload: Base.Payload, Peer: ZMQAlone})
			}
		}
	}
	for _, readers := range []int{1, 8, 64} {
		rows = append(rows, ZeroMQRow{Kind: FanOut, Link: "tcp", Payload: Base.Payload, Readers: readers})
	}
	for _, on := range []string{"tcp", "ipc"} {
		rows = append(rows, ZeroMQRow{Kind: Ask, Link: on, Payload: Base.Payload})
	}
	for i := range rows {
		rows[i].Readers = max(rows[i].Readers, 1)
		if rows[i].Peer == "" {
			rows[i].Peer = LibZMQ
		}
	}
	return rows
}

// ways are those that a row compares.
func (r ZeroMQRow) ways() []string {
	switch {
	case r.Kind == Pull && r.Peer != LibZMQ:
		return []string{ZMQ, ZMQWide, ZMQ4}
	case r.Kind == Pull:
		return []string{ZMQ, ZMQWide, ZMQAlone, ZMQ4, LibZMQ}
	case r.Kind == FanOut:
		return []string{ZMQ, ZMQ4, LibZMQ}
	}
	return []string{ZMQ, ZMQAlone, ZMQ4, LibZMQ}
}

// roles are those of what is measured and of its peer.
func (r ZeroMQRow) roles() (subject, peer string) {
	switch r.Kind {
	case Pull:
		return "pull", "push"
	case Push:
		return "push", "pull"
	case FanOut:
		return "pub", "sub"
	}
	return "dealer", "router"
}

// listens says whether what is measured is bound; the other side dials.
func (r ZeroMQRow) listens() bool { return r.Kind == Pull || r.Kind == FanOut }

// ZeroMQPlan says how ZeroMQ is measured.
type ZeroMQPlan struct {
	Plugin string        // the plugin's file, "" = not measured
	Peer   string        // the file of the peers that use other libraries than libzmq
	Rounds int           // at most
	Time   time.Duration // of one measurement
	Stalls time.Duration // of a subscriber that reads nothing: long enough to publish many times what any queue holds
	Rows   []ZeroMQRow
}

// ZeroMQSample is one measurement of a row. Messages are those that have
// arrived, or were answered.
type ZeroMQSample struct {
	Sample
	Sent    float64     `json:"sent"`     // a second, of FanOut
	PeerCPU float64     `json:"peer_cpu"` // microseconds a message
	Trips   Percentiles `json:"trips"`    // of Ask
}
