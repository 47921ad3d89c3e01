// SPDX-License-Identifier: Apache-2.0

//go:build race

package process

// raceEnabled says that the plugin under test is built with the race detector
// as well.
const raceEnabled = true
