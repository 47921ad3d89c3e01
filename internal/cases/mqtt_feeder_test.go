// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

// tryHeader numbers the publishes of one message, from 1: what the broker has had
// without an answer that came through is published again, and is another message
// to whoever counts.
const tryHeader = "x-try"

// feeder publishes with a client that is not ours until the broker has all of it,
// however often that restarts.
type feeder struct {
	t    *testing.T
	cm   *autopaho.ConnectionManager
	sent atomic.Int64 // messages that the broker has
	more atomic.Int64 // publishes beyond the first of a message
	done sync.WaitGroup
}

// feeders is how many publishes wait for their answers at a time.
const feeders = 64

// feed publishes n messages to a topic, each with name as its payload, while may
// allows the next one. All ends with the test, or with ctx.
func feed(ctx context.Context, t *testing.T, server, topic string, qos byte, n int, name func(i int) string, may func(sent int64) bool) *feeder {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &feeder{t: t}
	f.cm, err = autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{u}, KeepAlive: 30, CleanStartOnInitialConnection: true,
		ReconnectBackoff: autopaho.NewConstantBackoff(20 * time.Millisecond),
		ClientConfig:     paho.ClientConfig{ClientID: "feeder", PacketTimeout: time.Second}, // it forgets some when a connection is lost
	})
	if err != nil {
		t.Fatal(err)
	}
	var next atomic.Int64
	for range feeders {
		f.done.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				for look := time.NewTicker(time.Millisecond); !may(i) && ctx.Err() == nil; {
					<-look.C
				}
				f.publish(ctx, topic, qos, name(int(i)))
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		f.done.Wait()
		<-f.cm.Done()
	})
	return f
}

// publish publishes one message until the broker has it.
func (f *feeder) publish(ctx context.Context, topic string, qos byte, payload string) {
	for try := 1; ctx.Err() == nil; try++ {
		if f.cm.AwaitConnection(ctx) != nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		_, err := f.cm.Publish(limited, &paho.Publish{
			Topic: topic, QoS: qos, Payload: []byte(payload),
			Properties: &paho.PublishProperties{User: paho.UserProperties{{Key: tryHeader, Value: strconv.Itoa(try)}}},
		})
		cancel()
		if err == nil {
			f.sent.Add(1)
			return
		}
		f.more.Add(1)
	}
}
