// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

// A destination that the start did not know is asked of the plugin, which may take
// its time: a Request waits no longer than it may.
func TestRequestWaitsNoLongerForThePluginsWord(t *testing.T) {
	synctest.Test(t, testRequestWaitsNoLongerForThePluginsWord)
}

func testRequestWaitsNoLongerForThePluginsWord(t *testing.T) {
	q, s := newQueues(), newService(host.StayUp())
	release := make(chan struct{})
	defer close(release)
	q.targets = func(d pluginapi.Target) *pluginapi.TargetReport {
		if d.Name == "slow" {
			<-release
		}
		return nil
	}
	e := s.Endpoint("out", host.Plugin{InProcess: answering{q}}, nil)
	host.Handle(e.Subscription("orders"), acks)
	s.serve(t)
	began := time.Now()
	_, err := host.Request[string, string](t.Context(), s.Host, e.To("slow"), "x", host.WithTimeout(50*time.Millisecond))
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 50*time.Millisecond {
		t.Errorf("got %v after %v", err, took)
	}
}

// The names of destinations that messages bring are remembered within bounds.
func TestHugeReplyTo(t *testing.T) {
	q, s := newQueues(), newService(host.StayUp())
	e := attach(s.Host, "in", q)
	host.HandleReply(e.Subscription("orders"), func(context.Context, *host.Message[[]byte]) (string, error) { return "x", nil },
		host.MaxAttempts(1))
	s.serve(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n, size = 50, 1 << 20
	for i := range n {
		q.take(core.Message{Name: "orders", Payload: []byte("x"), Headers: core.Headers{
			{Name: "reply-to", Value: []byte(strings.Repeat("x", size) + strconv.Itoa(i))},
		}}, nil)
	}
	eventually(t, "all are settled", func() bool { return len(q.verdicts("orders")) == n })
	runtime.GC()
	runtime.ReadMemStats(&after)
	// The queues of the test keep what was read, and each reply under its name.
	if grew := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; grew > 2*n*size>>20+25 {
		t.Errorf("%d MiB more are held than before", grew)
	}
}

// answering are queues that answer requests.
type answering struct{ *queues }

func (a answering) Describe() pluginapi.Spec {
	s := a.queues.Describe()
	s.Requests = true
	return s
}

func (a answering) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	_, err := a.queues.Configure(s)
	return a, err
}

func (a answering) Connect(ctx context.Context, resume []byte) (pluginapi.Conn, error) {
	c, err := a.queues.Connect(ctx, resume)
	return answeringConn{c}, err
}

type answeringConn struct{ pluginapi.Conn }

func (answeringConn) Request(context.Context, pluginapi.Outgoing) (core.Message, error) {
	return core.Message{Payload: []byte(`"reply"`)}, nil
}
