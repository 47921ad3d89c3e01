// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore/host"
	zmq "github.com/longshore-go/longshore/plugins/zmq/settings"
)

// directory is the second stage.
type directory struct {
	host      *host.Host
	screen    *screen
	filed     *host.Publisher[[]byte]
	announced map[string]*host.Publisher[[]byte] // by topic
}

// newDirectory declares the second stage. A queue gives whoever binds it all that
// is sent there, whatever its name; what is tried again goes back to it.
func newDirectory(s *screen, o Options, book *logbook, b *broker) *directory {
	d := &directory{screen: s, host: host.New(host.WithLogger(watch(s, o))), announced: map[string]*host.Publisher[[]byte]{}}
	queue := d.host.Endpoint("queue", host.Plugin{Name: "zmq"}, zmq.Settings{
		Pattern: zmq.PatternQueue, Bind: book.queue(),
	})
	d.filed = host.To[[]byte](d.host, book.endpoint(d.host).To(keyFiled))
	publishers := []host.Target{d.filed}
	topics := b.endpoint(d.host, "demo-directory")
	for region := 'A'; region <= 'Z'; region++ {
		topic := topicAirports + string(region)
		p := host.To[[]byte](d.host, topics.To(topic))
		d.announced[topic] = p
		publishers = append(publishers, p)
	}
	host.Handle(queue.Subscription(keyDirectory), d.handle, host.MaxAttempts(maxAttempts), host.Publishes(publishers...))
	return d
}

// slowPage is the country whose airports do not get into the directory at first, and
// errPage why.
const slowPage = "IT"

var errPage = errors.New("its page of the directory is being printed")

// handle appends an airport to the stream file and announces it, and keeps a dead
// letter.
func (d *directory) handle(_ context.Context, m *host.Message[airport]) error {
	d.screen.count(func(c *counts) { c.queued++ })
	switch {
	case m.Name() == keyDead:
		d.screen.dead(m.Value, m.Header("x-longshore-attempts"), m.Header("x-longshore-reason"))
		return nil
	case m.Value.Country == slowPage && m.Attempt() == 1:
		d.screen.refiled(m.Value)
		return errPage
	case m.Value.Country == slowPage:
		d.screen.count(func(c *counts) { c.copied++ })
	}
	d.screen.count(func(c *counts) { c.directory++ })
	return errors.Join(d.filed.PublishWith(m, m.Payload()), d.announced[m.Value.topic()].PublishWith(m, m.Payload()))
}
