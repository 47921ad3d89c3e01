// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/pluginapi"
)

// Broker holds queues in the test process that the endpoints of a host are
// attached to. It outlives hosts, runs nothing while no host does, and needs no
// end. Its methods may be called from any goroutine; those that take a
// testing.TB end the test, so they are for the test's own.
type Broker struct {
	queues *memory.Broker
	match  func(subscription, name string) bool
	limit  time.Duration
	most   int
	back   int

	mu           sync.Mutex
	sources      map[string][]core.Capabilities
	destinations map[string]core.Publishing
	running      map[string]process.Generation // the newest of each endpoint
	services     []*Service
}

// BrokerOption tunes a broker.
type BrokerOption func(*Broker)

// WaitLimit bounds every wait of the broker and of services on it. The default
// is a minute, and in a synctest bubble 24 h of its time. It panics on a limit that
// is none.
func WaitLimit(d time.Duration) BrokerOption {
	if d <= 0 {
		panic(fmt.Sprintf("hosttest: WaitLimit: %v is no limit; use a time above 0", d))
	}
	return func(b *Broker) { b.limit = d }
}

// MessageLimit bounds the deliveries that the broker makes and the messages that
// it takes, so that messages that go round for ever end the test. The default is
// 100,000 of each. It panics on a limit below 1.
func MessageLimit(n int) BrokerOption {
	if n < 1 {
		panic(fmt.Sprintf("hosttest: MessageLimit: %d is no limit; use 1 or more", n))
	}
	return func(b *Broker) { b.most = n }
}

// ReturnLimit bounds how often one message is delivered, copies of it by their
// count header included, so that one that goes round for ever, as under
// FailPublishes with [Always], ends the test soon. The default is 1,000. It
// panics on a limit below 1.
func ReturnLimit(n int) BrokerOption {
	if n < 1 {
		panic(fmt.Sprintf("hosttest: ReturnLimit: %d is no limit; use 1 or more", n))
	}
	return func(b *Broker) { b.back = n }
}

// Matching says which names a subscription reads beside its own. By default one
// that ends with * reads all names that begin like it; see [Topics] for MQTT.
func Matching(match func(subscription, name string) bool) BrokerOption {
	return func(b *Broker) { b.match = match }
}

// The default limits: far above what a test needs, and reached within seconds.
const (
	defaultMost = 100_000
	defaultBack = 1_000
)

// NewBroker returns a broker without queues; they are made as they are named. In
// a synctest bubble it must be made within the bubble.
func NewBroker(opts ...BrokerOption) *Broker {
	b := &Broker{
		queues: memory.New(), most: defaultMost, back: defaultBack,
		sources: map[string][]core.Capabilities{}, destinations: map[string]core.Publishing{},
		running: map[string]process.Generation{},
	}
	for _, o := range opts {
		if o != nil {
			o(b)
		}
	}
	b.queues.KeepVerdicts()
	b.queues.Patient()
	b.queues.Limit(b.most)
	b.queues.LimitReturns(b.back)
	if b.match == nil {
		b.match = memory.Matches
	} else {
		b.queues.Match(b.match)
	}
	return b
}

// Replace is the option that puts every endpoint of a host onto the broker,
// whatever its plugin and settings say, so that a test runs the service's own
// wiring. All endpoints share the broker's queues: where two of them use the
// same name for different things give each a broker, see [ReplaceEach]. What the
// real transports would find wrong with settings and options is not found.
func (b *Broker) Replace() host.Option {
	return host.WithPlugins(func(_ string, p host.Plugin, s any) (host.Plugin, any) { return b.instead(p, s) })
}

// ReplaceEach is [Broker.Replace] with a broker for each endpoint, by its name.
// An endpoint that is not among them keeps its plugin.
func ReplaceEach(brokers map[string]*Broker) host.Option {
	brokers = maps.Clone(brokers)
	return host.WithPlugins(func(endpoint string, p host.Plugin, s any) (host.Plugin, any) {
		if b := brokers[endpoint]; b != nil {
			return b.instead(p, s)
		}
		return p, s
	})
}

// instead returns what stands in the place of an endpoint's plugin and settings.
func (b *Broker) instead(p host.Plugin, s any) (host.Plugin, any) {
	mine := b.Plugin()
	mine.Optional = p.Optional
	if _, err := pluginapi.EncodeSettings(s); err != nil {
		return mine, s // the start finds that
	}
	return mine, nil
}

// Plugin returns a plugin for one endpoint on the broker. Its subscriptions have
// these capability sets, one of a [Queue] without any; Source says otherwise for
// some of them.
func (b *Broker) Plugin(source ...core.Capabilities) host.Plugin {
	return host.Plugin{Name: transportName, InProcess: newTransport(b, source)}
}

// Source says what a subscription can do: one capability set for all its
// deliveries, or several of which each message names its own (Message.Profile).
// It holds from the next start of a plugin on, and panics on a set that no
// source can have.
func (b *Broker) Source(subscription string, profiles ...core.Capabilities) {
	for _, c := range profiles {
		if err := c.Valid(); err != nil {
			panic(fmt.Sprintf("hosttest: source %s: %v", subscription, err))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sources[subscription] = slices.Clone(profiles)
}

// Destination says what a name can do as a destination; see [Stored]. It holds
// from the next start of a plugin on.
func (b *Broker) Destination(name string, p core.Publishing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.destinations[name] = p
}

// settings are the settings of a transport whose subscriptions are like source.
func (b *Broker) settings(source []core.Capabilities) settings.Settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(source) == 0 {
		source = []core.Capabilities{Queue()}
	}
	s := settings.Settings{Address: "in process"}.With(Rest, source...)
	for name, profiles := range b.sources {
		s = s.With(name, profiles...)
	}
	for name, p := range b.destinations {
		s = s.WithDestination(name, settings.DestinationOf(p))
	}
	return s
}

// began keeps a plugin that was started.
func (b *Broker) began(endpoint string, g process.Generation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[endpoint] = g
}
