// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"log/slog"
	"time"
)

// Option tunes a host, see [New]. Nonsense is reported at start.
type Option struct {
	name  string
	place place
	many  bool // it may be given several times
	set   func(*options) *complaint
}

// options are a host's options, resolved. Zero numbers are the defaults of
// those who use them.
type options struct {
	logger        *slog.Logger
	journal       Journal
	drainLimit    time.Duration
	publishLimit  time.Duration
	waitMessages  int
	waitBytes     int64
	windowCount   int
	windowBytes   int64
	stayUp        bool
	defaults      []Rule
	backoffFirst  time.Duration
	backoffMax    time.Duration
	crashes       int
	crashesWithin time.Duration
	heartbeat     time.Duration
	missed        int
	startLimit    time.Duration
	connectLimit  time.Duration
	meter         *guardedMeter // nil = nobody is told
	tracer        Tracer
	plugins       func(endpoint string, p Plugin, settings any) (Plugin, any)
	codecs        codecs
	middleware    []func(PublishNext) PublishNext

	found []Finding // what options found beside what set returned
}

// defaultConnectLimit bounds one try to connect an endpoint and to open its
// subscriptions: long enough for name look-ups, TLS and a slow broker, short
// enough that a start which hangs is told.
const defaultConnectLimit = 30 * time.Second

// WithLogger sets where the host logs. The default is slog.Default().
func WithLogger(l *slog.Logger) Option {
	return Option{name: "WithLogger", place: caller(), set: func(o *options) *complaint {
		if l == nil || l.Handler() == nil {
			return &complaint{"is nil, or has no handler", "give a logger that slog.New made, or leave the option out"}
		}
		o.logger = l
		return nil
	}}
}

// WithJournal keeps copies that wait and messages that cannot be published over
// the end of the process. The default is none.
func WithJournal(j Journal) Option {
	return Option{name: "WithJournal", place: caller(), set: func(o *options) *complaint {
		o.journal = j
		if j == nil {
			return &complaint{"is nil", "give a journal, or leave the option out"}
		}
		return nil
	}}
}

// WithDrainLimit bounds a stop: handlers in work and waiting copies together
// have this long. Handlers are cancelled shortly before, in its last tenth and
// at most one second. The default, 0, is no limit.
func WithDrainLimit(d time.Duration) Option {
	return Option{name: "WithDrainLimit", place: caller(), set: func(o *options) *complaint {
		o.drainLimit = d
		return atLeast(d, 0)
	}}
}

// WithPublishLimit is how long a copy or dead letter that cannot be published
// for a passing reason is tried. The default is 60 s.
func WithPublishLimit(d time.Duration) Option {
	return Option{name: "WithPublishLimit", place: caller(), set: func(o *options) *complaint {
		o.publishLimit = d
		return atLeast(d, 1)
	}}
}

// WithWaitingLimits bounds the copies that wait in memory for their time, in
// number and in bytes of memory: payloads and headers, an eighth more for what is
// rounded up, 320 B each, 384 B more for those above 4 KiB, in the journal or
// followed by a hook, and 2 KiB for those that are due and being published. The
// garbage collector may need as much again. Beyond that a delivery stays unsettled
// instead. The defaults are 100,000 and 256 MiB.
func WithWaitingLimits(messages int, bytes int64) Option {
	return Option{name: "WithWaitingLimits", place: caller(), set: func(o *options) *complaint {
		o.waitMessages, o.waitBytes = messages, bytes
		return allOf(number("messages", messages, 1), number("bytes", bytes, 1))
	}}
}

// WithPublishWindow bounds the publishes of an endpoint whose receipts are
// missing, in number and in bytes; a quarter of it is kept for copies and dead
// letters. The defaults are 1024 and 8 MiB.
func WithPublishWindow(messages int, bytes int64) Option {
	return Option{name: "WithPublishWindow", place: caller(), set: func(o *options) *complaint {
		o.windowCount, o.windowBytes = messages, bytes
		return allOf(number("messages", messages, 4), number("bytes", bytes, 4))
	}}
}

// StayUp keeps the host running after all its sources have ended or caught up.
// The default is to stop then.
func StayUp() Option {
	return Option{name: "StayUp", place: caller(), set: func(o *options) *complaint {
		o.stayUp = true
		return nil
	}}
}

// WithRestartBackoff sets the pauses before a crashed plugin is started again:
// first, doubled with jitter for each further crash, at most longest. The
// defaults are 250 ms and 30 s.
func WithRestartBackoff(first, longest time.Duration) Option {
	return Option{name: "WithRestartBackoff", place: caller(), set: func(o *options) *complaint {
		o.backoffFirst, o.backoffMax = first, longest
		return allOf(number("first", first, 1), number("longest", longest, max(first, 1)))
	}}
}

// WithBreaker sets how many crashes of one plugin, within which time, end the
// host (or, of an optional endpoint, make it unready). The defaults are 5 and
// 2 minutes.
func WithBreaker(crashes int, within time.Duration) Option {
	return Option{name: "WithBreaker", place: caller(), set: func(o *options) *complaint {
		o.crashes, o.crashesWithin = crashes, within
		return allOf(number("crashes", crashes, 1), number("within", within, 1))
	}}
}

// WithHeartbeat sets how often plugins are asked for a sign of life, and after
// how many missed ones a plugin is killed as hung. The defaults are 1 s and 5.
func WithHeartbeat(every time.Duration, missed int) Option {
	return Option{name: "WithHeartbeat", place: caller(), set: func(o *options) *complaint {
		o.heartbeat, o.missed = every, missed
		return allOf(number("every", every, time.Millisecond), number("missed", missed, 1))
	}}
}

// WithStartLimit bounds the start of one plugin process until it has described
// itself, and its configuration after that. The default is 10 s.
func WithStartLimit(d time.Duration) Option {
	return Option{name: "WithStartLimit", place: caller(), set: func(o *options) *complaint {
		o.startLimit = d
		return atLeast(d, 1)
	}}
}

// WithConnectLimit bounds one try to connect an endpoint, and one to open a
// subscription. The default is 30 s.
func WithConnectLimit(d time.Duration) Option {
	return Option{name: "WithConnectLimit", place: caller(), set: func(o *options) *complaint {
		o.connectLimit = d
		return atLeast(d, 1)
	}}
}

// WithPublishMiddleware wraps the publishing of all publishers and requests; the
// first is outermost. The functions are called once for each publisher, by [To],
// and once for all requests, by [New]. Copies, dead letters, replies and what the rule
// [Forward] publishes are the host's own and do not pass through it.
func WithPublishMiddleware(ms ...func(PublishNext) PublishNext) Option {
	return Option{name: "WithPublishMiddleware", place: caller(), set: func(o *options) *complaint {
		o.middleware = ms
		_, c := wrapLeaving(ms)
		return c
	}}
}

// WithPlugins is made for tests: replace is called for each endpoint that is
// attached, with what [Host.Endpoint] was given, and what it returns stands in
// its place. A service whose own wiring takes options is so run on a transport
// in memory, unchanged; package hosttest has one. What the endpoint was given
// is checked no further than its Plugin's Name.
func WithPlugins(replace func(endpoint string, p Plugin, settings any) (Plugin, any)) Option {
	return Option{name: "WithPlugins", place: caller(), set: func(o *options) *complaint {
		o.plugins = replace
		if replace == nil {
			return &complaint{"is nil", "give a function, or leave the option out"}
		}
		return nil
	}}
}

// apply sets the options and returns what is wrong with them.
func (o *options) apply(opts []Option) []Finding {
	var found []Finding
	given := make(map[string]place, len(opts))
	for _, opt := range opts {
		if opt.set == nil {
			continue
		}
		if first, twice := given[opt.name]; twice && !opt.many {
			found = append(found, Finding{
				Option: opt.name, Message: "given twice", Fix: "keep one of them", Places: places(first, opt.place),
			})
			continue
		}
		given[opt.name] = opt.place
		if c := opt.set(o); c != nil {
			found = append(found, Finding{Option: opt.name, Message: c.message, Fix: c.fix, Places: places(opt.place)})
		}
	}
	found = append(found, o.found...)
	if o.logger == nil {
		o.logger = slog.Default()
	}
	if o.meter != nil {
		o.meter.log = o.logger
	}
	if o.startLimit <= 0 {
		o.startLimit = defaultStartLimit
	}
	if o.connectLimit <= 0 {
		o.connectLimit = defaultConnectLimit
	}
	return found
}

// defaultStartLimit is the limit of one plugin's start.
const defaultStartLimit = 10 * time.Second

// atLeast complains of a value below least.
func atLeast[N int | int64 | time.Duration](v, least N) *complaint {
	if v < least {
		return &complaint{fmt.Sprintf("%v is below %v", v, least), fmt.Sprintf("use %v or more, or leave the option out", least)}
	}
	return nil
}

// number complains of one of several numbers below least.
func number[N int | int64 | time.Duration](what string, v, least N) *complaint {
	c := atLeast(v, least)
	if c != nil {
		c.message = what + " " + c.message
		c.fix = fmt.Sprintf("use %v or more for %s", least, what)
	}
	return c
}

// allOf returns all complaints as one, nil where there are none.
func allOf(cs ...*complaint) *complaint {
	var all *complaint
	for _, c := range cs {
		switch {
		case c == nil:
		case all == nil:
			all = &complaint{c.message, c.fix}
		default:
			all.message += ", and " + c.message
			if c.fix != all.fix {
				all.fix += "; " + c.fix
			}
		}
	}
	return all
}

// unless complains where something does not hold.
func unless(holds bool, message, fix string) *complaint {
	if holds {
		return nil
	}
	return &complaint{message, fix}
}
