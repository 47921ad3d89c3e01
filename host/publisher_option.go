// SPDX-License-Identifier: Apache-2.0

package host

import "time"

// PublisherOption tunes a publisher, see [To]. Each may be given once; nonsense
// is reported at start.
type PublisherOption struct {
	name  string
	place place
	set   func(*publisher) *complaint
}

// The bounds of a publisher's publishes under way: enough to keep a broker that
// answers within milliseconds busy, and a third of an endpoint's publish window,
// so that one publisher does not keep the others waiting.
const (
	defaultInFlight      = 256
	defaultInFlightBytes = 4 << 20
)

// InFlight bounds the publishes of a publisher whose receipts are missing, in
// number and in bytes of payload and headers; bytes are exceeded by one message
// at most. A publish that finds no room waits for it. The defaults are 256 and
// 4 MiB. What [Publisher.PublishWith] holds back is not counted.
func InFlight(messages int, bytes int64) PublisherOption {
	return PublisherOption{"InFlight", caller(), func(p *publisher) *complaint {
		p.room.messages, p.room.bytes = messages, bytes
		return allOf(number("messages", messages, 1), number("bytes", bytes, 1))
	}}
}

// OrderedReceipts makes the publishes of a publisher come to their end in the
// order in which they were handed over, failed ones included: when one has ended
// all before it have. Each keeps its room among those in flight until its turn.
// The default is as the receipts come.
func OrderedReceipts() PublisherOption {
	return PublisherOption{"OrderedReceipts", caller(), func(p *publisher) *complaint {
		p.line = new(line)
		return nil
	}}
}

// PublishTimeout is [WithTimeout] for all messages of a publisher that do not
// say otherwise. The default is no limit.
func PublishTimeout(d time.Duration) PublisherOption {
	return PublisherOption{"PublishTimeout", caller(), func(p *publisher) *complaint {
		p.limit = d
		return atLeast(d, 1)
	}}
}

// PublishContentType is [WithContentType] for all messages of a publisher that
// do not say otherwise. The default is none.
func PublishContentType(t string) PublisherOption {
	return PublisherOption{"PublishContentType", caller(), func(p *publisher) *complaint {
		p.contentType = t
		if t == "" {
			return &complaint{"is empty", "name a content type, or leave the option out"}
		}
		return nil
	}}
}

// PublishMiddleware wraps the publishing of one publisher, within the host's
// [WithPublishMiddleware]; the first is outermost. The functions are called once,
// by [To].
func PublishMiddleware(ms ...func(PublishNext) PublishNext) PublisherOption {
	return PublisherOption{"PublishMiddleware", caller(), func(p *publisher) *complaint {
		p.middleware = ms
		return nil
	}}
}

// apply sets the options and reports what is wrong with them.
func (p *publisher) apply(opts []PublisherOption) {
	given := make(map[string]place, len(opts))
	wrong := func(option string, c *complaint, ps ...place) {
		p.host.complain(Finding{Endpoint: p.to.Endpoint, Option: option, Message: c.message, Fix: c.fix, Places: places(ps...)})
	}
	for _, o := range opts {
		if o.set == nil {
			continue
		}
		if first, twice := given[o.name]; twice {
			wrong(o.name, &complaint{"given twice", "keep one of them"}, first, o.place)
			continue
		}
		given[o.name] = o.place
		if c := o.set(p); c != nil {
			wrong(o.name, c, o.place)
		}
	}
	var c *complaint
	if _, c = wrapLeaving(p.middleware); c != nil {
		wrong("PublishMiddleware", c, given["PublishMiddleware"])
		return
	}
	ms := append(append([]func(PublishNext) PublishNext(nil), p.host.options.middleware...), p.middleware...)
	p.first, _ = wrapLeaving(ms) // those of the host are checked with its options
	p.first = p.host.options.tracedLeaving(p.first)
}
