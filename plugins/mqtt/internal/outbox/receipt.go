// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// refusals are the reasons that say more than their words: what class they are of
// and what to do. A server that gives no reason, or one of its own, may take the
// message later, as one whose quota is used up does.
var refusals = map[byte]struct {
	code    core.FaultCode
	passing bool
	fix     string
}{
	packet.CodeError:          {core.FaultUnavailable, true, "look into the server's log"},
	packet.CodeImplementation: {core.FaultUnavailable, true, "look into the server's log"},
	packet.CodeNotAuthorized:  {core.FaultDenied, false, "allow the user or the client id to publish to it"},
	packet.CodeTopicInvalid:   {core.FaultInvalid, false, "use a topic that the server takes"},
	packet.CodeIDInUse:        {core.FaultConflict, true, "give each connection a client id of its own"},
	packet.CodeTooLarge:       {core.FaultTooLarge, false, "shorten it, or raise the server's limit"},
	packet.CodeQuota:          {core.FaultExhausted, true, "raise the server's quota, or publish less"},
	packet.CodePayloadFormat:  {core.FaultInvalid, false, "send text as UTF-8, or another content-type"},
}

// refusal is the fault of what the server has refused.
func refusal(e *entry, typ byte, a *packet.Ack) *core.Fault {
	f := &core.Fault{Code: core.FaultInternal}
	if r, ok := refusals[a.Code]; ok {
		f.Code, f.Transient = r.code, r.passing
		f.Diagnostics = []core.Diagnostic{{Fix: r.fix}}
	}
	f.Message = fmt.Sprintf("%s: the server refuses it: %s", fault.PublishTo(e.post.Message.Name), packet.Word(typ, a.Code))
	if a.Reason != "" {
		f.Message += fmt.Sprintf(", %.200q", a.Reason)
	}
	return f
}

// unfit says why the server does not take a message, nil = it does; o.mu is held.
func (o *Outbox) unfit(e *entry) *core.Fault {
	s, p := &o.server, &e.post
	var what, fix string
	switch {
	case p.QoS > s.MaximumQoS: // [MQTT-3.2.2-11]
		what, fix = fmt.Sprintf("QoS %d, and the server takes %d at most", p.QoS, s.MaximumQoS), fmt.Sprintf("publish with qos %d", s.MaximumQoS)
	case p.Retain && s.NoRetain: // [MQTT-3.2.2-14]
		what, fix = "the server retains no messages", "publish without retain"
	case s.MaxPacket > 0 && e.size > s.MaxPacket: // [MQTT-3.2.2-15]
		return tooLarge(p.Message.Name, e.size, s.MaxPacket, "")
	default:
		return nil
	}
	f := fault.Refusal(core.FaultUnsupported, "%s: %s", fault.PublishTo(p.Message.Name), what)
	f.Diagnostics = []core.Diagnostic{{Fix: fix}}
	return f
}

// tooLarge is the fault of a packet above a limit: a setting's, or the server's.
func tooLarge(name string, size, limit int, setting string) *core.Fault {
	whose, fix := "the server's limit", "shorten the message, or raise the limit of the server"
	if setting != "" {
		whose, fix = "the limit ("+setting+")", "shorten the message, or raise "+setting
	}
	f := fault.Refusal(core.FaultTooLarge, "%s: a packet of %d bytes, %s is %d", fault.PublishTo(name), size, whose, limit)
	f.Diagnostics = []core.Diagnostic{{Fix: fix}}
	return f
}

// sessionLost is why nobody knows what became of a message of QoS 2.
func sessionLost(e *entry) *core.Fault {
	return &core.Fault{
		Code: core.FaultUnavailable,
		Message: fault.PublishTo(e.post.Message.Name) + ": the server has forgotten the session before it had confirmed the message," +
			" which may have arrived; it is not sent again, as QoS 2 is never doubled",
		Diagnostics: []core.Diagnostic{{Fix: "set session_expiry, so that the server keeps the session over a reconnect"}},
	}
}

// returning is the fault of a copy whose delivery comes back by itself.
func returning(name string) *core.Fault {
	return fault.Passing(core.FaultConflict, "wait for it",
		"%s: the session was resumed, and the delivery that it is a copy of comes again; the copy was not sent", fault.PublishTo(name))
}

// because is the fault of a message for a reason of the whole endpoint.
func because(doing string, why *core.Fault) *core.Fault {
	f := *why
	f.Message = doing + ": " + why.Message
	return &f
}

// late is the receipt of an entry that has expired before it could be sent. A copy
// is done with, as it is at a server: trying it again could not help, and keeping
// its delivery for it would be for ever. o.mu is held.
func (o *Outbox) late(e *entry) pluginapi.Receipt {
	name := e.post.Message.Name
	switch {
	case e.post.Copy:
		o.expired.note(name)
		return pluginapi.Confirmed()
	case e.maybe:
		return pluginapi.Unknown(fault.Refusal(core.FaultTimeout,
			"%s: the server has forgotten the session before it had confirmed the message, which has expired since", fault.PublishTo(name)))
	default:
		f := fault.Refusal(core.FaultTimeout, "%s: it expired before it could be sent", fault.PublishTo(name))
		f.Diagnostics = []core.Diagnostic{{Fix: "allow a longer expiry"}}
		return pluginapi.Refused(f)
	}
}

// unsent is the receipt of an entry that nothing more becomes of, for a reason: it
// is refused where the server cannot have it.
func unsent(e *entry, why *core.Fault) pluginapi.Receipt {
	f := because(fault.PublishTo(e.post.Message.Name), why)
	if e.maybe || e.rel {
		f.Message += "; the server had not confirmed the message, which may have arrived"
		return pluginapi.Unknown(f)
	}
	f.Message += "; the message was not sent"
	return pluginapi.Refused(f)
}

// noticeEvery is how often copies that have expired are told of at most.
const noticeEvery = time.Second

// notice counts copies that have expired and have not been told of.
type notice struct {
	count int
	name  string // of the last one
	told  time.Time
}

func (n *notice) note(name string) { n.count, n.name = n.count+1, name }

func (n *notice) due() bool { return n.count > 0 && time.Since(n.told) >= noticeEvery }

// take returns what is to be told now.
func (n *notice) take(all bool) notice {
	if !n.due() && !all {
		return notice{}
	}
	told := *n
	n.count, n.told = 0, time.Now()
	return told
}

func (o *Outbox) tellExpired(n notice) {
	if n.count > 0 {
		o.c.Log.Warn("copies were not sent, their messages have expired", "count", n.count, "topic", n.name)
	}
}
