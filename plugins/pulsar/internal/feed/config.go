// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Topic is a topic to read.
type Topic struct {
	Name topic.Name // a topic, all of its partitions, or one partition of it
	As   string     // as the subscription names it: the name of its deliveries
}

// Config is what a feed reads, and how.
type Config struct {
	Client       *client.Client // connected
	Subscription string
	Type         wire.SubscriptionType
	Topics       []Topic        // these, or
	Pattern      *topic.Pattern // all that match

	Earliest      bool          // a new subscription begins at the earliest message, else at the latest
	ReceiverQueue int           // messages that the broker sends ahead, for each partition
	ReceiverBytes int           // bytes of them, in all partitions together, one message in each at least; 0 = 32 MiB
	ConsumerName  string        // of all partitions' consumers, "" = one by chance
	Discovery     time.Duration // between looks for partitions and topics
	Attempts      int           // to open a partition at the start, 0 = until the context ends
	RetryDelay    time.Duration // between them

	// Turn is called where it becomes the turn of a partition's consumer on Failover, or
	// that of another one, by the goroutine that reads the connection. It must not block.
	// Batches that were read before may be taken still.
	Turn func(p *Partition, active bool)
	// Ended is called once where nothing can be read any more, from any goroutine. It
	// must not block.
	Ended func(*core.Fault)
	Log   *slog.Logger
}

// times are the waits of a feed. Tests shorten some.
type times struct {
	settle    time.Duration // before a lost consumer is made anew: what a broker does to its topic takes a moment
	retry     time.Duration // between tries, doubled each time
	retryMost time.Duration
	answers   time.Duration // for acks that are out when their consumer is closed
	closing   time.Duration // for the answer to a consumer's close, and for acks before a seek
	parting   time.Duration // for the answer to a consumer's close where the feed ends: a broker that lives needs milliseconds
	proof     time.Duration // for the answer that proves life
	doubt     time.Duration // for the answer to acks, which a living consumer gets in milliseconds
}

func defaultTimes() times {
	return times{
		settle:    200 * time.Millisecond,
		retry:     200 * time.Millisecond,
		retryMost: 5 * time.Second,
		answers:   100 * time.Millisecond,
		closing:   5 * time.Second,
		parting:   time.Second,
		proof:     10 * time.Second,
		doubt:     2 * time.Second,
	}
}

// opening is how many consumers are made at once: the broker looks up, and may load,
// a topic for each.
const opening = 16

// refusals is after how many refusals in a row a subscription ends, which could be
// made before: a topic that is just deleted, made or moved is refused for a moment.
const refusals = 3
