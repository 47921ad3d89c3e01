// SPDX-License-Identifier: Apache-2.0

//go:build race

package cases

// raceEnabled says that tests run with the race detector, which makes a host an
// order of magnitude slower.
const raceEnabled = true
