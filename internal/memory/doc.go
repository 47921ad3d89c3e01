// SPDX-License-Identifier: Apache-2.0

// Package memory is a transport for tests: a broker in the test process and a
// plugin (memory/transport, longshore-transport-memory) that dials it. Every
// capability of a source and of a destination can be switched, and the broker
// behaves as they say. It keeps the truth: what became of each message that it
// took, whatever happened to plugin and host.
//
//	b := memtest.Start(t)                       // broker on a socket, plugin built
//	b.Publish("orders", memory.Text("m01"))
//	endpoint := h.Endpoint("mem", host.Plugin{Name: "memory", Path: b.Path},
//		b.Settings.With("orders", settings.KindA()))
//	...
//	c, err := b.Client(ctx, "mem")              // the plugin that is connected
//	err = c.Kill()
//	err = b.WaitSettled(ctx, "orders", 1)
//
// # What is counted
//
// Every message accepted, from a test or from a plugin, is at each moment one of
// queued, outstanding, acked, rejected, dead-lettered, sent (delivered by a
// source without acks) and lost. [Account.Check] says whether that adds up.
// Doubles are messages that came to a queue with the payload and count header
// of one before.
//
// # Time
//
// Delays and holds are package time's, so that a broker in a testing/synctest
// bubble follows its clock. There the transport runs in the process and dials
// with Broker.Dial, since sockets do not belong to a bubble.
package memory
