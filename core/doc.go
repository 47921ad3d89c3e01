// SPDX-License-Identifier: Apache-2.0

// Package core holds longshore's vocabulary and its settlement engine: pure
// values, standard library only, no I/O and no goroutines.
//
// A handler says an [Outcome]. [Decide] turns the outcome, the declared
// [Policy] and the [Capabilities] of the source into a [Plan]: the ordered
// steps that settle the delivery. The same plan is printed by [Explain],
// executed by the host, and cut apart by [Fate] to say what a crash after each
// step loses.
package core
