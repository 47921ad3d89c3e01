// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// The ways of the rows of MQTT.
const (
	MQTT      = "mqtt"              // host and plugin, as they are by default
	MQTTWide  = "mqtt, window 1024" // with that window
	MQTTAlone = "mqtt, alone"       // the transport in one process, without SDK and host
	Autopaho  = "autopaho"          // the client of eclipse/paho.golang in one process
	Buffered  = "buffered"          // the same over a connection with buffers
	Packets   = "packets"           // what the server can do: packets that are ready, or are not looked at
)

// The kinds of rows of MQTT. The other end of the server is [Packets].
const (
	Consume  = "consume"
	Publish  = "publish" // what has arrived counts
	Arriving = "one way" // the time from a publish to the handler
)

// MQTTRow is one row of MQTT.
type MQTTRow struct {
	Kind    string `json:"kind"`
	QoS     int    `json:"qos"`
	Payload int    `json:"payload"`
	Headers int    `json:"headers"`
}

// String names the row.
func (r MQTTRow) String() string {
	return fmt.Sprintf("%-7s QoS %d %5d B + %d", r.Kind, r.QoS, r.Payload, r.Headers)
}

// MQTTRows are the rows of MQTT whose text a regular expression matches, "" for
// all.
func MQTTRows(match string) ([]MQTTRow, error) {
	of, err := regexp.Compile(match)
	if err != nil {
		return nil, fmt.Errorf("choose rows of MQTT: %w", err)
	}
	var rows []MQTTRow
	for _, kind := range []string{Consume, Publish, Arriving} {
		for qos := range 3 {
			rows = append(rows, MQTTRow{Kind: kind, QoS: qos, Payload: Base.Payload})
		}
		if kind != Arriving {
			rows = append(rows, MQTTRow{Kind: kind, Payload: Base.Payload, Headers: Base.Headers})
		}
	}
	return slices.DeleteFunc(rows, func(r MQTTRow) bool { return !of.MatchString(r.String()) }), nil
}

// ways are those that a row compares.
func (r MQTTRow) ways() []string {
	switch r.Kind {
	case Consume:
		if r.Headers > 0 {
			return []string{MQTT, Autopaho}
		}
		return []string{MQTT, MQTTWide, MQTTAlone, Autopaho, Buffered, Packets}
	case Publish:
		if r.Headers > 0 {
			return []string{MQTT, Autopaho}
		}
		return []string{MQTT, MQTTAlone, Autopaho, Buffered, Packets}
	}
	return []string{MQTT, Autopaho}
}

// MQTTPlan says how MQTT is measured.
type MQTTPlan struct {
	Plugin   string        // the plugin's file, "" = not measured
	Peer     string        // the file of the clients that use other libraries
	Rounds   int           // at most
	Messages int           // of one measurement at QoS 0; a third at QoS 1, a fifth at QoS 2
	Latency  time.Duration // of one measurement of Arriving
	Lost     time.Duration // after so long without an arrival what is missing is lost
	Waiting  int           // messages that are published to a slow handler at a time, 0 = not measured
	Rows     []MQTTRow
}

// messages are how many a row takes.
func (p *MQTTPlan) messages(r MQTTRow) int {
	return max(p.Messages/[]int{1, 3, 5}[r.QoS], 2)
}

// MQTTSample is one measurement of a row.
type MQTTSample struct {
	Sample
	Lost      float64     `json:"lost"`       // of the messages that were published
	PeerCPU   float64     `json:"peer_cpu"`   // microseconds a message
	ServerCPU float64     `json:"server_cpu"` // likewise
	Trips     Percentiles `json:"trips"`      // of Arriving
}
