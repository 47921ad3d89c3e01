// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
)

// capture is a log that tests look into.
type capture struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// lines returns the lines of a level that hold all of some texts.
func (c *capture) lines(level string, texts ...string) []string {
	var found []string
next:
	for line := range strings.Lines(c.String()) {
		if !strings.Contains(line, "level="+level) {
			continue
		}
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

func (c *capture) has(level string, texts ...string) bool { return len(c.lines(level, texts...)) > 0 }

// captureLog lets a plugin log into a capture.
func captureLog(o *Options) *capture {
	c := &capture{}
	o.Logger = slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return c
}

// listenUntilEnd listens on a Unix socket until the test ends.
func listenUntilEnd(t *testing.T, path string) {
	t.Helper()
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
}
