// SPDX-License-Identifier: Apache-2.0

// Package collector tunes the garbage collector of a plugin's process.
package collector

import "runtime"

// spare is what a process may have of garbage beside as much as is alive. In a
// plugin little is alive and all that it reads becomes garbage, so that the
// collector would hardly stop; with a higher percentage instead, a full queue
// would be a multiple of its bound in memory.
const spare = 32 << 20

// Relax lets the collector wait for some garbage where little is alive. The
// memory it takes for that is never touched and so never resident. It is given
// back by the function that is returned.
func Relax() (end func()) {
	ballast := make([]byte, spare/2) // counted as alive, and doubled by the default of 100 percent
	return func() { runtime.KeepAlive(ballast) }
}
