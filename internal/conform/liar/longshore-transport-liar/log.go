// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// level is the weight of a log line.
type level int32

const (
	levelDebug level = iota
	levelInfo
	levelWarn
	levelError
)

// cutAt is the length of the lines of a lie.
const cutAt = 4 << 10

var (
	levelNames = []string{"debug", "info", "warn", "error"}
	// cutsLog is the lie that cuts lines.
	cutsLog atomic.Bool
	// logged is the level from which on lines are written; one a process.
	logged atomic.Int32
)

// setLevel takes the level that the host asks for; unknown ones change nothing.
func setLevel(name string) {
	if i := slices.Index(levelNames, name); i >= 0 {
		logged.Store(int32(i))
	}
}

// logf writes one line for the host's log.
func logf(l level, format string, args ...any) {
	if int32(l) < logged.Load() {
		return
	}
	line, err := json.Marshal(map[string]string{
		"@level":     levelNames[l],
		"@message":   fmt.Sprintf(format, args...),
		"@timestamp": time.Now().Format("2006-01-02T15:04:05.000000Z07:00"),
	})
	if err == nil {
		for cutsLog.Load() && len(line) > cutAt {
			_, _ = os.Stderr.Write(append(line[:cutAt:cutAt], '\n'))
			line = line[cutAt:]
		}
		_, _ = os.Stderr.Write(append(line, '\n'))
	}
}
