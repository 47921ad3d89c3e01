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

var (
	levelNames = []string{"debug", "info", "warn", "error"}
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
		_, _ = os.Stderr.Write(append(line, '\n'))
	}
}
