// SPDX-License-Identifier: Apache-2.0

// Package api guards what the public packages export: its test compares every
// signature, field and method with files under testdata. A change of the API is
// a change of these files, seen in review; go test ./internal/api -update writes
// them.
package api
