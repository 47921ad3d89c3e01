// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// The ways of the rows of Pulsar.
const (
	Pulsar         = "pulsar"                         // host and plugin, as they are by default
	PulsarAlone    = "pulsar, alone"                  // the transport in one process, without SDK and host
	PulsarClient   = "pulsar-client-go"               // the library in one process, with what the transport sets
	PulsarDefaults = "pulsar-client-go, its defaults" // it batches, and awaits no answers to its acks
)

// PulsarRow is one row of Pulsar: Consume reads a backlog on a Shared subscription
// and acks each message, and Publish counts receipts. Two are timed, each with the library
// at the other end: Arriving is read by the way, Leaving is published by it.
type PulsarRow struct {
	Kind    string `json:"kind"`
	Batched bool   `json:"batched"` // many messages an entry, not one
	Payload int    `json:"payload"`
	Headers int    `json:"headers"`
}

// String names the row.
func (r PulsarRow) String() string {
	entries := "single"
	if r.Batched {
		entries = "batches"
	}
	return fmt.Sprintf("%-7s %-7s %5d B + %d", r.Kind, entries, r.Payload, r.Headers)
}

// PulsarRows are the rows of Pulsar whose text a regular expression matches, "" for
// all.
func PulsarRows(match string) ([]PulsarRow, error) {
	of, err := regexp.Compile(match)
	if err != nil {
		return nil, fmt.Errorf("choose rows of Pulsar: %w", err)
	}
	rows := []PulsarRow{
		{Kind: Consume}, {Kind: Consume, Headers: Base.Headers}, {Kind: Consume, Batched: true},
		{Kind: Publish}, {Kind: Publish, Headers: Base.Headers}, {Kind: Publish, Batched: true},
		{Kind: Arriving}, {Kind: Leaving},
	}
	for i := range rows {
		rows[i].Payload = Base.Payload
	}
	return slices.DeleteFunc(rows, func(r PulsarRow) bool { return !of.MatchString(r.String()) }), nil
}

// Leaving is the time from a publish to the library's consumer.
const Leaving = "leaving"

// timed reports whether its messages are timed, one after the other.
func (r PulsarRow) timed() bool { return r.Kind == Arriving || r.Kind == Leaving }

// ways are those that a row compares.
func (r PulsarRow) ways() []string {
	switch {
	case r.timed(), r.Headers > 0:
		return []string{Pulsar, PulsarClient}
	case r.Kind == Publish && r.Batched: // the library's own batches are in the row of single messages
		return []string{Pulsar, PulsarAlone, PulsarClient}
	}
	return []string{Pulsar, PulsarAlone, PulsarClient, PulsarDefaults}
}

// PulsarPlan says how Pulsar is measured.
type PulsarPlan struct {
	Plugin   string        // the plugin's file, "" = not measured
	Peer     string        // the file of the clients that use the library
	Rounds   int           // at most
	Messages int           // of one measurement; twice as many in batches
	Latency  time.Duration // of one measurement of a row that is timed
	Backlog  int           // messages before slow handlers, 0 = not measured
	Large    int           // likewise, of messages of 1 MiB
	Rows     []PulsarRow
}

// messages are how many a row takes.
func (p *PulsarPlan) messages(r PulsarRow) int {
	switch {
	case r.timed():
		return int(p.Latency / pause)
	case r.Batched:
		return 2 * p.Messages
	}
	return p.Messages
}

// PulsarSample is one measurement of a row.
type PulsarSample struct {
	Sample
	BrokerCPU float64     `json:"broker_cpu"` // microseconds a message
	Trips     Percentiles `json:"trips"`      // of rows that are timed
}
