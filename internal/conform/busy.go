// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"
)

// mostStretch bounds how much more time a busy machine gives.
const mostStretch = 10

// stretched is a short limit, of the protocol or of a host, on the machine as it
// is: where more wants to run than there are processors for, all takes as many
// times longer, which is no fault of a plugin. Where that cannot be told the limit
// stands as it is.
func stretched(limit time.Duration) time.Duration {
	text, err := os.ReadFile("/proc/loadavg") // of Linux alone
	if err != nil {
		return limit
	}
	return time.Duration(float64(limit) * stretch(text, runtime.NumCPU()))
}

// stretch is the factor by which a load stretches limits: of the last minute, or
// of the moment where more runs now (proc(5), loadavg).
func stretch(loadavg []byte, cpus int) float64 {
	fields := bytes.Fields(loadavg)
	if len(fields) < 4 {
		return 1
	}
	load, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil {
		return 1
	}
	running, _, _ := bytes.Cut(fields[3], []byte("/"))
	if now, err := strconv.ParseFloat(string(running), 64); err == nil {
		load = max(load, now)
	}
	return min(1+load/float64(cpus), mostStretch)
}
