// SPDX-License-Identifier: Apache-2.0

// Package client is what the Pulsar transport knows of its brokers: the library's
// client with its security, and beside it a connection of our own to the service
// URL (ADR 0120, 0124).
//
// The connection of our own makes the first connect one with a limit and a reason,
// says whether the brokers are there, and is asked what the library has no call for.
// Messages never go over it. A reason that will not change ends the client with a
// fault, any other is tried again after 100 ms, then after twice as long each time
// up to 5 s.
package client
