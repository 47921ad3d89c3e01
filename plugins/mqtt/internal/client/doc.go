// SPDX-License-Identifier: Apache-2.0

// Package client keeps one MQTT 5 connection to one server: it dials, over TCP or
// TLS, shakes hands, reads, writes, keeps alive, and dials again when the
// connection is lost. What packets mean is its [Handler]'s business (ADR 0110).
//
// A connection is a [Link]. Its packets are read by one goroutine, which never
// waits for anything but the network, and they are written by whoever has any:
// what is written while others write leaves with it, in one call of the kernel.
//
// A reason that will not change ends the client with a fault, any other is tried
// again after 100 ms, then after twice as long each time up to 5 s.
package client
