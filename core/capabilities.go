// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// AckMode says how deliveries of a source are acknowledged.
type AckMode uint8

// The ack modes. The zero value is the weakest.
const (
	AckNone       AckMode = iota // nothing can be acked
	AckSingle                    // each delivery by itself
	AckCumulative                // everything up to the delivery, within its scope
)

// RequeueMode says whether a source takes deliveries back.
type RequeueMode uint8

// The requeue modes.
const (
	RequeueNone    RequeueMode = iota // a delivery cannot be handed back
	RequeueNow                        // comes back at once
	RequeueDelayed                    // comes back after a delay, see MaxDelay
)

// RejectMode says what a reject does with a delivery.
type RejectMode uint8

// The reject modes.
const (
	RejectNone        RejectMode = iota // there is no reject
	RejectDrops                         // gone for good
	RejectDeadLetters                   // the source moves it to a dead letter of its own
)

// CountMode says whether the source counts deliveries.
type CountMode uint8

// The count modes.
const (
	CountNone   CountMode = iota // not counted
	CountNative                  // the source counts every delivery, the first one is 1
)

// Unsettled says what becomes of a delivery that ends without a verdict.
type Unsettled uint8

// What becomes of unsettled deliveries.
const (
	UnsettledLost         Unsettled = iota // never delivered again
	UnsettledOnResume                      // again when the kept session resumes
	UnsettledOnDisconnect                  // again when the source's connection ends
	UnsettledOnTimeout                     // again when its hold (MaxHold) ends
)

// OrderMode says in what order a source delivers.
type OrderMode uint8

// The order modes.
const (
	OrderNone     OrderMode = iota // no order
	OrderPerScope                  // in order within a partition or session
	OrderTotal                     // in order
)

// Capabilities is what a source can do with its deliveries. A zero mode is the
// weakest, a zero limit is no limit. Limits are exclusive. Subscriptions whose
// deliveries differ (MQTT's qualities of service) have one set per profile.
type Capabilities struct {
	Ack       AckMode
	Requeue   RequeueMode
	MaxDelay  time.Duration // of a delayed requeue, exclusive; 0 = no limit
	MaxHold   time.Duration // longest a delivery may stay unsettled, exclusive; 0 = no limit
	Extend    bool          // the hold can be prolonged
	Reject    RejectMode
	Counts    CountMode
	Recounts  bool   // the count lies in the source's memory: what comes again without a requeue may be 1 again
	Address   string // publishing this name on this endpoint returns here; "" = no address of its own
	Unsettled Unsettled
	Durable   bool // what is unsettled survives the source's own restart
	Order     OrderMode
	// Rewinds: a requeue takes the scope back to it, and so does the end of its hold where
	// Unsettled is UnsettledOnTimeout: what was delivered from behind it is void and comes
	// again in order.
	Rewinds bool
}

// Confirm says what a confirmed receipt of a destination is worth.
type Confirm uint8

// What a receipt promises.
const (
	ConfirmNothing    Confirm = iota // nothing
	ConfirmQueued                    // queued in the plugin or its client
	ConfirmHandedOver                // handed to the operating system or a peer
	ConfirmStored                    // stored by the transport
)

// Retention says who keeps a published message until it is read.
type Retention uint8

// Who keeps a message.
const (
	RetainNothing   Retention = iota // nobody: read at once or gone
	RetainProcess                    // this process alone reads it
	RetainTransport                  // the transport keeps it
)

// HeaderMode says how a destination carries headers.
type HeaderMode uint8

// How headers travel.
const (
	HeadersNone        HeaderMode = iota // not at all
	HeadersNativeText                    // beside the payload, values of text
	HeadersNativeBytes                   // beside the payload, values of any bytes
	HeadersEnveloped                     // inside the payload, whose bytes they change
)

// Publishing is what a destination can do with messages.
type Publishing struct {
	Confirms   Confirm
	Retains    Retention
	MaxDelay   time.Duration // the transport itself delivers later, exclusive; 0 = it cannot
	Dedups     bool          // a message sent again under the same id arrives once
	Headers    HeaderMode
	Repeats    bool  // several headers may have one name
	MaxBytes   int64 // largest payload plus headers; 0 = the protocol's own limit
	MaxHeaders int   // most headers; 0 = no limit
}
