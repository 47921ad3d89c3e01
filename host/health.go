// SPDX-License-Identifier: Apache-2.0

package host

import (
	"time"

	"github.com/longshore-go/longshore/host/internal/settlement"
)

// Health is what a host was at, at one time. It is written as JSON with its
// states as text.
type Health struct {
	State State `json:"state"`
	// Ready says that the host serves: no stop has begun, every endpoint is
	// connected, and every subscription is open or has come to its end. One that
	// is paused, or that its circuit breaker has paused, is open.
	Ready bool `json:"ready"`
	// Since is when State became what it is.
	Since time.Time `json:"since"`
	// Reason is why the host did not start, why it stops, or why it stopped; ""
	// where nothing went wrong.
	Reason string `json:"reason,omitempty"`
	// Waiting counts the copies that wait for their time.
	Waiting int `json:"waiting"`
	// Endpoints are in the order in which they were attached. There are none
	// before Run was called.
	Endpoints []EndpointHealth `json:"endpoints"`
}

// State is what a host is at.
type State string

// The states of a host, in order.
const (
	StateNew      State = "new"      // Run was not called
	StateStarting State = "starting" // plugins are started, checked, connected
	StateServing  State = "serving"
	StateStopping State = "stopping" // what is in work is finished
	StateStopped  State = "stopped"  // Run has returned, or is about to
)

// EndpointHealth is what an endpoint was at.
type EndpointHealth struct {
	Name      string        `json:"name"`
	Transport string        `json:"transport"` // "" = its plugin has not named it yet
	Optional  bool          `json:"optional,omitempty"`
	State     EndpointState `json:"state"`
	Since     time.Time     `json:"since"` // of State
	// Reason is why the endpoint is not up, in words of the host or its plugin.
	Reason string `json:"reason,omitempty"`
	// Generation numbers the life of its plugin that is up, or was last; 0 = none
	// was up yet.
	Generation uint64 `json:"generation"`
	// Restarts is how often its plugin was started again, in vain or not.
	Restarts uint64 `json:"restarts"`
	// Stderr is what the plugin that was started last printed to its standard
	// error, newest last: its last 20 lines, after the first 20 of a panic. A
	// transport that runs in process has none.
	Stderr        []string             `json:"stderr,omitempty"`
	Published     Published            `json:"published"`
	Subscriptions []SubscriptionHealth `json:"subscriptions"` // in order of declaration
}

// EndpointState is what an endpoint is at.
type EndpointState string

// The states of an endpoint.
const (
	// EndpointStarting: it was not up yet.
	EndpointStarting EndpointState = "starting"
	// EndpointUp: its plugin runs and is connected, as far as it says so.
	EndpointUp EndpointState = "up"
	// EndpointDisconnected: its plugin runs and has lost its connection, which it
	// tries to bring back.
	EndpointDisconnected EndpointState = "disconnected"
	// EndpointRestarting: its plugin is lost and is started again, soon.
	EndpointRestarting EndpointState = "restarting"
	// EndpointTripped: its plugin was lost too often; as the endpoint is optional
	// it is tried once a minute. See [WithBreaker].
	EndpointTripped EndpointState = "tripped"
	// EndpointLost: it is lost for good. Unless it is optional the host stops.
	EndpointLost EndpointState = "lost"
	// EndpointStopped: the host's stop has ended it.
	EndpointStopped EndpointState = "stopped"
)

// Published counts the publishes of an endpoint, the copies and dead letters of
// the runtime included, by what they came to. The three that are no gauge only
// grow.
type Published struct {
	Confirmed uint64 `json:"confirmed"`
	Refused   uint64 `json:"refused"` // by the transport, or because the endpoint was down
	Unknown   uint64 `json:"unknown"` // they may have been sent
	Missing   uint64 `json:"missing"` // a gauge: receipts that are awaited, of what waits for room as well
}

// SubscriptionHealth is what a subscription was at.
type SubscriptionHealth struct {
	Name  string            `json:"name"`
	State SubscriptionState `json:"state"`
	Since time.Time         `json:"since"` // of State
	// Reason is why nothing is delivered, "" where that is as the service wants it.
	Reason   string   `json:"reason,omitempty"`
	Counters Counters `json:"counters"`
	// Hooks counts the calls of AfterSettle and OnFinalFailure that wait or run.
	Hooks int `json:"hooks"`
}

// SubscriptionState is what a subscription is at.
type SubscriptionState string

// The states of a subscription. Where several hold it is the first of them in
// this order: ended, stopped, waiting, down, paused, tripped, caught up. One that
// ended with an error for good stays down when the host stops.
const (
	// SubscriptionWaiting: it was not open yet, or not all others are.
	SubscriptionWaiting SubscriptionState = "waiting"
	// SubscriptionOpen: what there is is delivered.
	SubscriptionOpen SubscriptionState = "open"
	// SubscriptionPaused: the service has paused it.
	SubscriptionPaused SubscriptionState = "paused"
	// SubscriptionTripped: its circuit breaker pauses intake, or probes.
	SubscriptionTripped SubscriptionState = "tripped"
	// SubscriptionCaughtUp: all that there is was delivered; more may come.
	SubscriptionCaughtUp SubscriptionState = "caught up"
	// SubscriptionEnded: all that there is was delivered and nothing more comes.
	SubscriptionEnded SubscriptionState = "ended"
	// SubscriptionDown: its endpoint is not up, or it ended with an error and is
	// opened again.
	SubscriptionDown SubscriptionState = "down"
	// SubscriptionStopped: the host stops and takes nothing more off it.
	SubscriptionStopped SubscriptionState = "stopped"
)

// Counters count a subscription's deliveries since Run was called. Each one is
// in exactly one of Acked to Stale, or in InWork, at any time:
//
//	Received = Acked + Retried + Dropped + DeadLettered + Parked + Released + Stale + InWork
type Counters struct {
	Received     uint64 `json:"received"`
	Acked        uint64 `json:"acked"`
	Retried      uint64 `json:"retried"`       // requeued, or a copy left
	Dropped      uint64 `json:"dropped"`       // gone for good without a dead letter, lost ones included
	DeadLettered uint64 `json:"dead_lettered"` // their dead letter left
	Parked       uint64 `json:"parked"`        // kept by the journal
	Released     uint64 `json:"released"`      // left to the source
	Stale        uint64 `json:"stale"`         // the source took them back, or they were lost with their plugin

	InWork  uint64 `json:"in_work"` // a gauge: received and not ended
	Waiting uint64 `json:"waiting"` // a gauge, part of InWork: copies that wait for their time

	// These stand beside the above.

	Lost    uint64 `json:"lost"`    // messages that do not come back though nobody wanted that
	Failed  uint64 `json:"failed"`  // verdicts that failed or came too late
	Reports uint64 `json:"reports"` // errors of the source that are bound to no delivery
}

// countersOf turns a lane's counts into a subscription's.
func countersOf(c settlement.Counters) Counters {
	return Counters{
		Received: c.Received, Acked: c.Acked, Retried: c.Retried, Dropped: c.Dropped,
		DeadLettered: c.DeadLettered, Parked: c.Parked, Released: c.Released, Stale: c.Stale,
		InWork: c.InWork, Waiting: c.Waiting, Lost: c.Lost, Failed: c.Failed, Reports: c.Reports,
	}
}
