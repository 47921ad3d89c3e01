// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// A ReasonError is a server's refusal of a connection, or its end.
type ReasonError struct {
	Packet          byte // packet.TypeConnack or packet.TypeDisconnect
	Code            byte
	Reason          string // the server's own words, "" = none
	ServerReference string // where to go, with some codes
}

// Error has the code in words, and the server's own.
func (e *ReasonError) Error() string {
	s := "the server refuses the connection: "
	if e.Packet == packet.TypeDisconnect {
		s = "the server ended the connection: "
	}
	s += packet.Word(e.Packet, e.Code)
	if e.Reason != "" {
		s += fmt.Sprintf(": %.200q", e.Reason)
	}
	if e.ServerReference != "" {
		s += fmt.Sprintf(", it refers to %.200q", e.ServerReference)
	}
	return s
}

// configError is a CONNECT that cannot be written.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

// foreignError is an answer to a CONNECT that is not one of an MQTT 5 server.
type foreignError struct{ err error }

func (e *foreignError) Error() string { return e.err.Error() }
func (e *foreignError) Unwrap() error { return e.err }

// passes reports whether trying again can help. A refusal is for good unless
// it speaks of the moment, the end of a connection is not unless it would
// meet the next one as well: two clients of one identifier would throw each
// other out for ever.
func (e *ReasonError) passes() bool {
	if e.Packet == packet.TypeConnack {
		switch e.Code {
		case packet.CodeUnavailable, packet.CodeBusy, packet.CodeQuota, packet.CodeConnectionRate:
			return true
		}
		return false
	}
	switch e.Code {
	case packet.CodeTakenOver, packet.CodeNotAuthorized, packet.CodeBanned, packet.CodeAuthMethod,
		packet.CodeUseAnother, packet.CodeMoved, packet.CodeRetainUnsupported, packet.CodeQoSUnsupported,
		packet.CodeSharedUnsupported, packet.CodeIdentifiersUnsupported, packet.CodeWildcardsUnsupported:
		return false
	}
	return true
}

// fatal is the fault of an error behind which nothing is tried again, nil = it
// passes.
func (c *Client) fatal(err error) *core.Fault {
	if e, ok := errors.AsType[*ReasonError](err); ok {
		if e.passes() {
			return nil
		}
		return c.refused(e)
	}
	if e, ok := errors.AsType[*configError](err); ok {
		return c.fault(core.FaultInvalid, e, "", "shorten it, or write it as UTF-8")
	}
	if e, ok := errors.AsType[*foreignError](err); ok {
		if c.wasUp() { // what answers now may be a balancer, while the server is away
			return nil
		}
		return c.foreign(e)
	}
	return c.insecure(err)
}

// fault is a fault that says who was about to connect where.
func (c *Client) fault(code core.FaultCode, err error, path, fix string) *core.Fault {
	return &core.Fault{
		Code: code, Message: c.name() + ": " + err.Error(),
		Diagnostics: []core.Diagnostic{{Path: path, Fix: fix}},
	}
}

// advice is what a reason code means for whoever configures the endpoint.
type advice struct {
	code core.FaultCode
	path string
	fix  string
}

var advices = map[byte]advice{ // by reason code (3.2.2.2, 3.14.2.1); never written to
	packet.CodeVersion:                {core.FaultUnsupported, "url", "name a server that speaks MQTT 5"},
	packet.CodeClientID:               {core.FaultInvalid, "client_id", "choose one that the server allows"},
	packet.CodeCredentials:            {core.FaultDenied, "username", "correct username and password, or those in url"},
	packet.CodeNotAuthorized:          {core.FaultDenied, "username", "correct username and password, or let the server admit this client_id"},
	packet.CodeBanned:                 {core.FaultDenied, "client_id", "lift the server's ban on this client"},
	packet.CodeAuthMethod:             {core.FaultDenied, "username", "let the server take a user and a password: other methods are not offered"},
	packet.CodeTakenOver:              {core.FaultConflict, "client_id", "give each client an identifier of its own: another one connected under this one, and connecting again would end that one"},
	packet.CodeTopicInvalid:           {core.FaultInvalid, "will.topic", "choose a topic that the server allows"},
	packet.CodeTooLarge:               {core.FaultTooLarge, "will.payload", "make it smaller: the CONNECT is larger than the server allows"},
	packet.CodePayloadFormat:          {core.FaultInvalid, "will.content_type", "let the payload be what it says"},
	packet.CodeRetainUnsupported:      {core.FaultUnsupported, "will.retain", "do not retain: the server keeps no retained messages"},
	packet.CodeQoSUnsupported:         {core.FaultUnsupported, "will.qos", "use a lower QoS: the server does not take this one"},
	packet.CodeUseAnother:             {core.FaultUnavailable, "url", "name the server that this one refers to"},
	packet.CodeMoved:                  {core.FaultUnavailable, "url", "name the server that this one refers to"},
	packet.CodeSharedUnsupported:      {core.FaultUnsupported, "", "do not use share groups with this server"},
	packet.CodeIdentifiersUnsupported: {core.FaultUnsupported, "", "do not use overlapping filters with this server"},
	packet.CodeWildcardsUnsupported:   {core.FaultUnsupported, "", "do not use filters with wildcards with this server"},
}

// refused is the fault of a reason code.
func (c *Client) refused(e *ReasonError) *core.Fault {
	a, ok := advices[e.Code]
	if !ok {
		a = advice{core.FaultUnavailable, "url", "look into the server's log"}
	}
	return c.fault(a.code, e, a.path, a.fix)
}

// foreign is the fault of a server that does not speak MQTT 5.
func (c *Client) foreign(e *foreignError) *core.Fault {
	if bad, ok := errors.AsType[*packet.ProtocolError](e); ok && bad.Code == packet.CodeVersion {
		return c.fault(core.FaultUnsupported, e, "url", "name a server that speaks MQTT 5")
	}
	fix := "name the port on which the server speaks MQTT 5"
	if !c.config.Address.TLS {
		fix += "; mqtts:// if it is one for TLS"
	}
	return c.fault(core.FaultUnsupported, fmt.Errorf("what listens there is no MQTT 5 server: %w", e), "url", fix)
}

// insecure is the fault of a TLS connection that the two sides do not agree on.
func (c *Client) insecure(err error) *core.Fault {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return c.fault(core.FaultDenied, err, "tls_server_name", "name a host that the server's certificate has, here or in url")
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return c.fault(core.FaultDenied, err, "url", "renew the server's certificate, and look at this machine's clock")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return c.fault(core.FaultDenied, err, "tls_ca", "name the file of the authority that has signed the server's certificate")
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return c.fault(core.FaultUnsupported, err, "url", "name the port on which the server speaks TLS, or write mqtt://")
	}
	if fault.RefusedByPeer(err) {
		return c.fault(core.FaultDenied, err, "tls_cert", "name a certificate, with its key, that the server takes")
	}
	return nil
}

// unreachable is what Start returns when its time is over.
func (c *Client) unreachable(last, cause error) *core.Fault {
	f := &core.Fault{Code: core.FaultUnavailable, Transient: true}
	switch {
	case last != nil:
		f.Message = c.name() + ": " + last.Error()
	case errors.Is(cause, context.Canceled):
		f.Code, f.Message = core.FaultCanceled, c.name()+": not connected yet: "+cause.Error()
	default:
		f.Code, f.Message = core.FaultTimeout, c.name()+": no answer yet: "+cause.Error()
	}
	fix := "look whether the server runs and can be reached from here"
	if c.config.Address.TLS {
		fix += "; mqtt:// if the port is one without TLS" // such a server hangs up at what is no CONNECT
	} else {
		fix += "; mqtts:// if the port is one for TLS" // such a server hangs up at a CONNECT
	}
	f.Diagnostics = []core.Diagnostic{{Path: "url", Fix: fix}}
	return f
}
