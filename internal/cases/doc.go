// SPDX-License-Identifier: Apache-2.0

// Package cases holds the trials that cross process boundaries: a real host,
// real plugin processes, and what users reported of other systems. Each test is
// named after its case; README.md maps every case to the tests that show it.
package cases
