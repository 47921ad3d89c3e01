// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/file"
	"github.com/longshore-go/longshore/plugins/file/settings"
	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// telling makes messages every byte of which tells which one it is.
func telling(key string, n uint64) core.Message {
	size := int(n*37%1500) + 8
	if n%97 == 0 {
		size += int(n * 911 % 300_000) // longer than a frame, and than a chunk
	}
	m := core.Message{Name: key, Payload: binary.BigEndian.AppendUint64(nil, n)}
	m.Payload = fill(m.Payload, key, n, size)
	for i := range n % 4 { // without one it is no envelope
		m.Headers = append(m.Headers, core.Header{
			Name: fmt.Sprintf("h%d-%d", i, n%50), Value: fmt.Appendf(nil, "%s %x", key, fill(nil, key, n+i, int(n%40))),
		})
	}
	return m
}

func fill(b []byte, key string, n uint64, size int) []byte {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, key, n)
	random := rand.NewPCG(n, h.Sum64())
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, random.Uint64())
	}
	return b[:max(size, 8)]
}

// untold says how a message is not the one of its key that its payload names.
func untold(key string, payload []byte, headers core.Headers) string {
	if len(payload) < 8 {
		return fmt.Sprintf("%s with a payload of %x", key, payload)
	}
	n := binary.BigEndian.Uint64(payload)
	if n > 1<<20 {
		return fmt.Sprintf("%s with number %x", key, n)
	}
	want := telling(key, n)
	if string(payload) != string(want.Payload) {
		return fmt.Sprintf("%s %d has the payload of another one, or none", key, n)
	}
	if len(headers) != len(want.Headers)+1 {
		return fmt.Sprintf("%s %d has the headers %v", key, n, headers)
	}
	for _, h := range want.Headers {
		if v, _ := headers.Get(h.Name); string(v) != string(h.Value) {
			return fmt.Sprintf("%s %d has the header %s: %q", key, n, h.Name, v)
		}
	}
	if v, _ := headers.Get("stream-sequence"); string(v) != strconv.FormatUint(n, 10) {
		return fmt.Sprintf("%s %d has the number %q", key, n, v)
	}
	return ""
}

// keptMessage is what a handler has kept.
type keptMessage struct {
	key     string
	payload []byte
	headers core.Headers
}

// fillTelling writes n messages under each key.
func fillTelling(t *testing.T, path string, n uint64, keys ...string) {
	t.Helper()
	b := open(t, settings.Settings{Path: path, BeaconInterval: 64 << 10}, writes(keys...))
	for i := range n {
		for _, k := range keys {
			out := servicetest.Message(k, "")
			out.Message = telling(k, i+1)
			b.publish(out)
		}
	}
	b.end()
}

// watchTelling reads the file with many subscriptions at a time, slowly and in
// small windows, with retries at the source, until all have caught up. keep says
// that handlers keep what they were given, as it is, and look again later.
func watchTelling(t *testing.T, p host.Plugin, path string, keep bool, n int) {
	log := &servicetest.Log{}
	h := host.New(host.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	in := h.Endpoint("in", p, settings.Settings{Path: path, BeaconInterval: 64 << 10})
	var mu sync.Mutex
	var kept []keptMessage
	var seen atomic.Int64
	want := int64(0)
	for i, s := range []struct {
		name  string
		group string
		times int
	}{{"ka", "", 1}, {"k*", "", 2}, {"ka*", "g1", 1}, {"*", "g2", 2}, {"kb", "g3", 1}} {
		sub := in.Subscription(s.name, host.Options(settings.Subscription{Replay: true, Group: s.group}),
			host.Window([]int{300, 3, 40, 7, 1}[i], []int64{0, 5000, 100_000, 0, 1}[i]))
		want += int64(s.times * n)
		rules := []host.Rule{host.RetryTo(in.To("again"))} // nothing is
		if s.group != "" {
			rules = []host.Rule{host.MaxAttempts(5), host.Workers(3)}
		}
		host.Handle(sub, func(_ context.Context, m *host.Message[[]byte]) error {
			told := untold(m.Name(), m.Value, m.Headers())
			if rand.IntN(20) == 0 {
				time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
				told += untold(m.Name(), m.Value, m.Headers())
			}
			if told != "" {
				t.Errorf("subscription %d, attempt %d: %s", i, m.Attempt(), told)
			}
			if keep {
				mu.Lock()
				kept = append(kept, keptMessage{m.Name(), m.Value, m.Headers()})
				mu.Unlock()
			}
			if s.group != "" && m.Attempt() < 3 && rand.IntN(8) == 0 {
				if rand.IntN(2) == 0 {
					return host.RetryAfter(time.Duration(rand.IntN(10))*time.Millisecond, nil)
				}
				return host.Retry(nil)
			}
			seen.Add(1)
			return nil
		}, rules...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Limit)
	defer cancel()
	if err := h.Run(ctx); err != nil {
		t.Fatalf("the host ended with %v\n%.3000s", err, log)
	}
	for _, m := range kept {
		if told := untold(m.key, m.payload, m.headers); told != "" {
			t.Fatalf("kept: %s", told)
		}
	}
	if got := seen.Load(); got != want {
		t.Errorf("%d messages were settled, want %d\n%.3000s", got, want, log)
	}
}

// In the same process nothing that a handler was given is written again at any
// time, whatever else is read.
func TestMessagesStayInProcess(t *testing.T) {
	path := newPath(t)
	fillTelling(t, path, 600, "ka", "kb")
	watchTelling(t, host.Plugin{Name: "file", InProcess: file.New()}, path, true, 600)
}

// With a plugin process, whose memory is overwritten as soon as it is given back,
// handlers are given what was written, however slow they are.
func TestMessagesOfAProcessAreWhatWasWritten(t *testing.T) {
	if !poison.On {
		t.Skip("runs with the race detector, or the tag poison")
	}
	plugin := filepath.Join(t.TempDir(), "longshore-transport-file")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "poison", "-o", plugin, "./longshore-transport-file")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // else all of it is compiled once more
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	path := newPath(t)
	fillTelling(t, path, 600, "ka", "kb")
	watchTelling(t, host.Plugin{Name: "file", Path: plugin}, path, false, 600)
}
