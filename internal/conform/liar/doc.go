// SPDX-License-Identifier: Apache-2.0

// Package liar holds the ways in which the test transport "liar" can break
// docs/protocol.md. Without a lie it keeps every promise: the plugin was written
// from that page alone, without the SDK. Each lie is to be caught by the cases of
// the conformance suite that it names.
package liar
