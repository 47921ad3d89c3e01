// SPDX-License-Identifier: Apache-2.0

// Package conform proves from outside that a transport plugin keeps the
// promises of docs/protocol.md.
//
//  1. Run starts the built binary as a host would, asks what it is, hands over
//     the settings and connects once. What is wrong then is an error, and no
//     case has run.
//  2. It chooses the cases by the capabilities that the plugin advertises. Each
//     case has processes, names and messages of its own, and speaks with them
//     over the protocol alone.
//  3. It returns a Report. Every case has passed, failed, does not apply to
//     these capabilities, or was not run because the subject lacks what it
//     needs.
//
// Beside what a case asks, every stream is watched for what holds always: ids,
// credit, the order of results, the end.
package conform
