// SPDX-License-Identifier: Apache-2.0

// Package hosttest tests services without processes and brokers: their endpoints
// are attached to a [Broker] in the test, which delivers what the test says,
// keeps every verdict and every publish, and fails on command.
//
//	func TestShipping(t *testing.T) {
//		b := hosttest.NewBroker()
//		h := host.New(b.Replace(), hosttest.Logger(t))
//		register(h) // the service's own wiring
//		s := hosttest.Start(t, h)
//
//		b.Deliver("orders", hosttest.JSON(Order{ID: 7}))
//		shipped := b.WaitPublished(t, "shipped", 1)
//		s.Wait() // everything is settled
//		...
//	}
//
// # Time
//
// Within testing/synctest all of it follows the bubble's clock: an hour of
// backoff passes at once, and so does the restart of a crashed plugin. Make the
// broker and the host inside the bubble.
//
// A start takes none of it and deliveries come at once, so runs are at the times
// that the policy says. What a wait is for may be known a microsecond late, where
// the host has a last step to do, and later by a part of what it took where the
// broker does not see it, as with a hook that sleeps: round times behind a wait.
//
// # What stands for which transport
//
// Give a subscription what its source can do, with [Broker.Source]:
//
//	pipe, file, MQTT QoS 0       Stream; a pipe without loopback has Address "",
//	                             and so has a pattern of a file's keys
//	file with a group            Group
//	ZeroMQ                       Stream; Address "" unless it is bound
//	MQTT QoS 1 and 2             Session; Unsettled lost where no session is kept
//	Pulsar Shared, KeyShared     CountingTopic; with an ack timeout it is MaxDelay
//	                             and MaxHold, and Unsettled is on-timeout
//	Pulsar Exclusive, Failover   the same with Counts none
//	a log with offsets           Log
//	Redis Streams (examples)     CountingLease with its hold, and without an order
//	SQS and what is like it      CountingLease, its hold the visibility timeout
//	a lease and no more of it    Lease
//	AMQP                         Queue; CountingQueue where the broker counts
//	a queue that delays          DelayQueue
//
// A destination is [Stored] unless [Broker.Destination] says otherwise: it keeps
// all headers, whatever their bytes, and any payload. So give it what the real one
// can carry, [Enveloped] for a pipe or a file, for others what longshore plugin
// describe prints: a header or a size that the real one refuses, and headers of
// dead letters that it does not have, are then found by the test.
//
// # Waits and failures
//
// Every wait has a limit, and ends before it when the host has ended. What it
// fails with says what came instead and where every message is. A host that
// does not stop fails its test, and so does one that ends with an error which
// the test did not ask for.
//
// # Caveats
//
//   - In a bubble only what synctest calls durably blocked lets time pass. A
//     handler that waits for a mutex, a file or a real connection stops the
//     clock, and with it every limit; go test's -timeout ends that.
//   - The broker stands in for transports, it does not act like a certain one:
//     give subscriptions what the real one can do, as above, and check settings and
//     options against the real one's schema, which needs no process where it is a
//     Go package: see the example.
package hosttest
