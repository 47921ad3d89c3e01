// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Explain is the fault of an error of this package: what failed, the broker's reason, and
// whether trying again can help. err must not be nil. A *core.Fault keeps its class, and
// what is not known is taken for something that passes.
func Explain(what string, err error) *core.Fault {
	if f, ok := errors.AsType[*core.Fault](err); ok {
		return fault.Of(what, f)
	}
	if e, ok := errors.AsType[*ConnectError](err); ok {
		return e.fault(what)
	}
	if e, ok := errors.AsType[*ServerError](err); ok {
		a := adviceOf(e.Code)
		// The code stands for a second consumer, another type and a limit; brokers tell them
		// apart by their words alone. Where those are others the advice is for all three.
		if e.Code == wire.ConsumerBusy && strings.Contains(e.Message, "different type") {
			a.fix = fixType
		}
		return a.fault(what, line(e.Error()))
	}
	f := fault.Of(what, errors.New(line(err.Error())))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = core.FaultTimeout
	case errors.Is(err, context.Canceled):
		f.Code = core.FaultCanceled
	}
	f.Transient = f.Code != core.FaultCanceled
	return f
}

// Refused reports the code by which a broker has refused a request.
func Refused(err error) (wire.ServerError, bool) {
	if e, ok := errors.AsType[*ServerError](err); ok {
		return e.Code, true
	}
	return 0, false
}

// advice is what a refusal means.
type advice struct {
	code      core.FaultCode
	transient bool
	fix       string
}

func (a advice) fault(what, reason string) *core.Fault {
	f := &core.Fault{Code: a.code, Message: what + ": " + reason, Transient: a.transient}
	if a.fix != "" {
		f.Diagnostics = []core.Diagnostic{{Fix: a.fix}}
	}
	return f
}

// adviceOf is what a code of a broker means. What is not known passes.
func adviceOf(code wire.ServerError) advice {
	if a, ok := advices[code]; ok {
		return a
	}
	return advice{code: core.FaultUnavailable, transient: true}
}

const (
	fixPermission = "grant this client the permission, or let it introduce itself as somebody who has it"
	fixQuota      = "let consumers catch up, or raise the backlog quota of the namespace"
	fixType       = "give all that read under this name the same type, or this one a subscription of its own"
	fixTopic      = "create it, its tenant and its namespace; brokers create topics by themselves where allowAutoTopicCreation lets them"
)

// advices by the codes that do not simply pass; never written to.
var advices = map[wire.ServerError]advice{
	wire.AuthenticationError:                   {core.FaultDenied, false, "set a token or a certificate that the broker takes"},
	wire.AuthorizationError:                    {core.FaultDenied, false, fixPermission},
	wire.ConsumerBusy:                          {core.FaultConflict, true, "end the other consumer, or share the subscription: type shared, failover or key_shared, the same on all sides; or raise the limit of consumers"},
	wire.ProducerBusy:                          {core.FaultConflict, true, "give each process a producer_name of its own"},
	wire.ProducerFenced:                        {core.FaultConflict, false, "end the other producer, which has the topic for itself"},
	wire.ProducerBlockedQuotaExceededError:     {core.FaultExhausted, true, fixQuota},
	wire.ProducerBlockedQuotaExceededException: {core.FaultExhausted, true, fixQuota},
	wire.TooManyRequests:                       {core.FaultExhausted, true, ""},
	wire.UnsupportedVersionError:               {core.FaultUnsupported, false, "use a broker that knows the request"},
	wire.TopicNotFound:                         {core.FaultNotFound, false, fixTopic},
	wire.SubscriptionNotFound:                  {core.FaultNotFound, false, "create the subscription, or let brokers create them by themselves (allowAutoSubscriptionCreation)"},
	wire.TopicTerminatedError:                  {core.FaultClosed, false, "publish to another topic: this one takes nothing any more"},
	wire.InvalidTopicName:                      {core.FaultInvalid, false, "name a topic that the broker takes"},
	wire.IncompatibleSchema:                    {core.FaultUnsupported, false, "use a topic without a schema, or one for bytes"},
	wire.NotAllowedError:                       {core.FaultUnsupported, false, "look into the topic's and the namespace's policies"},
	wire.TransactionCoordinatorNotFound:        {core.FaultUnsupported, false, ""},
	wire.InvalidTxnStatus:                      {core.FaultUnsupported, false, ""},
	wire.TransactionConflict:                   {core.FaultUnsupported, false, ""},
	wire.TransactionNotFound:                   {core.FaultUnsupported, false, ""},
}

// maxLine is how much of a foreign text is shown, in bytes: brokers send what their
// exceptions say.
const maxLine = 400

// line is a foreign text as one printable line of bounded length.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	s = strings.TrimSuffix(s, ".") // more may follow
	if len(s) <= maxLine {
		return s
	}
	cut := maxLine
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
