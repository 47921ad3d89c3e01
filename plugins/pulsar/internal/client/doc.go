// SPDX-License-Identifier: Apache-2.0

// Package client is what the Pulsar transport knows of its brokers: who they are, whether
// they can be reached, and connections to them (ADR 0120, 0124).
//
// One connection, the link, goes to the service URL. It makes the first connect one with
// a limit and a reason, says whether the brokers are there, and carries what is looked
// up. A reason that will not change ends the client with a fault, any other is tried again
// after 100 ms, then after twice as long each time up to 5 s.
//
// Other connections go to the brokers that serve topics, and carry what consumers and
// producers receive and send. They are made when somebody wants them, shared by all of
// one broker, and not made again by themselves: who was registered with one that has
// ended looks its topic up again.
//
// # Caveats
//
// Handlers are called by the goroutine that reads the connection. One that blocks keeps
// everything from all others of that broker, the answers that it may wait for among them.
package client
