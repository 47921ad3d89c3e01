// SPDX-License-Identifier: Apache-2.0

// Package hosttest tests services without processes and brokers: their endpoints
// are attached to a [Broker] in the test, which delivers what the test says,
// keeps every verdict and every publish, and fails on command.
//
//	func TestShipping(t *testing.T) {
//		b := hosttest.NewBroker()
//		h := host.New(b.Replace(), hosttest.Logger(t))
//		register(h) // the service's own wiring
//		s := hosttest.Start(t, h, b)
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
//     give subscriptions what the real one can do ([Broker.Source], and longshore
//     plugin describe says what that is), and test settings with the real one.
package hosttest
