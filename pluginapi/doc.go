// SPDX-License-Identifier: Apache-2.0

// Package pluginapi is the contract with authors of transports, and the SDK
// that serves a transport as a plugin.
//
// A transport is three interfaces that return each other: [Transport] is
// configured to an [Endpoint], which connects to a [Conn], which opens
// [Subscription] values. [Serve] is the whole main of a plugin. What a transport
// can do is data: a [Spec] for all of it, capability sets for each subscription,
// a core.Publishing for each destination; the host plans by them and never asks
// for more.
//
// # Lifecycle
//
//  1. Describe: says what the transport is. No I/O, any number of times, the
//     same answer every time.
//  2. Configure: binds settings, which fit the schema already. No I/O, once.
//  3. Inspect: sees all registrations and destinations of the endpoint at once
//     and answers what each can do, and what is refused. No I/O, any number of
//     times.
//  4. Connect: opens the endpoint's connections, with what the last life handed
//     over. Once, again only after it failed.
//  5. Subscribe, Publish, Request: work. One Receive and one Settle run beside
//     each other on each subscription; Publish is one call at a time for the
//     endpoint.
//  6. Subscription.Close: after a stop, when the last verdicts are carried out.
//     Also when the host is gone; nothing was settled then.
//  7. Conn.Close: ends intake, flushes accepted publishes and given verdicts
//     within its context, and hands over what the next life needs.
//
// The SDK keeps this order and answers a call out of order by itself.
//
// # What the SDK does
//
// Ids, credit, frames and receipts never reach an author. A [Delivery] carries a
// Handle, any value, that comes back in its [Verdict]; Receive is told its
// [Room]; Publish gets messages and one function to call for each. Options and
// settings are checked against their schemas before the transport sees them,
// verdicts against the delivery's profile, messages against the limits of
// protocol and destination. What a transport says of itself is checked too: a
// subscription that promises more than its Inspect did is ended with a fault
// that names the field. A panic in any of these calls ends what it belongs to,
// not the process.
//
// Deliveries that come while others are on their way to the host share the next
// frame, so Receive may as well return them one at a time.
//
// # Errors
//
// Return a [Fault] where the host shall decide by its class: Transient says that
// trying again can help, Diagnostics point at fields. Any other error becomes an
// internal fault with its text. Texts are for people, nothing decides by them.
//
// # Caveats
//
// Whatever a call returned or was given stays as it is: payloads and headers
// that Receive returned may be read at any later time, so they come out of
// buffers that are not used again before the [Memory] of their [Batch] is
// released, if it names one. The slices of a Batch themselves may be used again
// in the next Receive. The bytes of messages that Publish is given
// (payload, header values, Carry, Options) are valid until their done is called,
// and not after: what is kept longer must be cloned. Their strings may be kept.
//
// Receive is called with a Room of 0 messages while the window is used up, so
// that voids, reports and the end come through; it is cancelled and called
// again when there is room. Every blocking call gets a context: one that is not
// looked at within five seconds of its end is left behind with an error in the
// log, and what it returns later is lost.
//
// Handles that appear in a [Void], or that [Held] and [Cumulative] see, must be
// comparable.
//
// A panic on a goroutine of the transport's own ends the process; the host
// starts it again.
package pluginapi
