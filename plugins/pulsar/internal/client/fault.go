// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// name is who connects where, for faults.
func (c *Client) name() string { return "Pulsar client of " + c.config.Address.String() }

// fault is a fault that says who was about to connect where, and how often.
func (c *Client) fault(code core.FaultCode, err error, path, fix string) *core.Fault {
	c.mu.Lock()
	tries := c.tries
	c.mu.Unlock()
	return &core.Fault{
		Code: code, Message: c.name() + ": " + line(err.Error()) + after(tries),
		Diagnostics: []core.Diagnostic{{Path: path, Fix: fix}},
	}
}

// after says how many tries there were, where one does not say it itself.
func after(tries int) string {
	if tries < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d tries)", tries)
}

// fatal is the fault of an error behind which nothing is tried again, nil = it
// passes.
func (c *Client) fatal(err error) *core.Fault {
	if e, ok := errors.AsType[*ServerError](err); ok {
		return c.refusal(e)
	}
	if e, ok := errors.AsType[*foreignError](err); ok {
		if c.wasUp() { // what answers now may be a balancer, while the brokers are away
			return nil
		}
		return c.foreign(e)
	}
	if e, ok := errors.AsType[*fileError](err); ok {
		if c.wasUp() { // files that are being renewed
			return c.outlasted(e.fault())
		}
		return e.fault()
	}
	if f := c.insecure(err); f != nil {
		return c.outlasted(f)
	}
	return nil
}

// refusal is the fault of a broker's refusal of a connection.
func (c *Client) refusal(e *ServerError) *core.Fault {
	a := adviceOf(e.Code)
	if a.transient {
		return nil
	}
	f := c.fault(a.code, e, "", a.fix)
	ended := c.config.tokenEnded()
	switch {
	case e.Code != wire.AuthenticationError && e.Code != wire.AuthorizationError:
		return f
	case c.config.TokenFile != "" && ended != "":
		f.Diagnostics = []core.Diagnostic{{Path: "token_file", Fix: "write a new token into the file: the one in it has ended at " + ended}}
	case c.config.TokenFile != "":
		f.Diagnostics = []core.Diagnostic{{Path: "token_file", Fix: "write a token into the file that the broker takes"}}
	case ended != "":
		f.Diagnostics = []core.Diagnostic{{Path: "token", Fix: "set a new token: this one has ended at " + ended}}
	case c.config.method() == methodToken:
		f.Diagnostics = []core.Diagnostic{{Path: "token", Fix: "set a token that the broker takes"}}
	case c.config.method() == methodTLS:
		f.Diagnostics = []core.Diagnostic{{Path: "tls_cert", Fix: "name a certificate, with its key, that the broker takes"}}
	default:
		f.Diagnostics = []core.Diagnostic{{Path: "token", Fix: "set token, token_file, or tls_cert with tls_key: the broker asks who this client is"}}
	}
	return c.outlasted(f)
}

// outlasted is f where it stands: at once at the first connect, and where nothing that
// it depends on can be renewed; else when it has lasted for the client's patience.
func (c *Client) outlasted(f *core.Fault) *core.Fault {
	if !c.wasUp() || !c.config.renewed() && c.config.TLS.CA == "" {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused.IsZero() {
		c.refused = time.Now()
	}
	if time.Since(c.refused) < c.times.patience {
		return nil
	}
	return f
}

// foreign is the fault of something else than a Pulsar broker.
func (c *Client) foreign(e *foreignError) *core.Fault {
	fix := "name the port on which the broker speaks Pulsar's binary protocol, not the one of its administration: 6650, and 6651 over TLS, unless it was told another"
	if !c.config.Address.TLS {
		fix += "; pulsar+ssl:// if it is one for TLS"
	}
	return c.fault(core.FaultUnsupported, fmt.Errorf("what listens there is no Pulsar broker: %w", e), "url", fix)
}

// insecure is the fault of a TLS connection that the two sides do not agree on, nil =
// it is none.
func (c *Client) insecure(err error) *core.Fault {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return c.fault(core.FaultDenied, err, "url", "name a host that the broker's certificate has; tls_verify_hostname: false leaves the name unchecked")
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return c.fault(core.FaultDenied, err, "url", "renew the broker's certificate, and look at this machine's clock")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return c.fault(core.FaultDenied, err, "tls_ca", "name the file of the authority that has signed the broker's certificate")
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return c.fault(core.FaultUnsupported, err, "url", "name the port on which the broker speaks TLS, or write pulsar://")
	}
	if fault.RefusedByPeer(err) {
		return c.fault(core.FaultDenied, err, "tls_cert", "name a certificate, with its key, that the broker takes")
	}
	return nil
}

// unreachable is what Connect returns when its time is over; c.mu is held.
func (c *Client) unreachable(cause error) *core.Fault {
	f := &core.Fault{Code: core.FaultUnavailable, Transient: true}
	switch {
	case c.last != nil:
		f.Message = fmt.Sprintf("%s: %s (tries: %d)", c.name(), line(c.last.Error()), c.tries)
	case errors.Is(cause, context.Canceled):
		f.Code, f.Message = core.FaultCanceled, c.name()+": not connected yet: "+cause.Error()
	default:
		f.Code, f.Message = core.FaultTimeout, c.name()+": no answer yet: "+cause.Error()
	}
	fix := "look whether a broker runs there and can be reached from here"
	if c.config.Address.TLS {
		fix += "; pulsar:// if the port is one without TLS"
	} else {
		fix += "; pulsar+ssl:// if the port is one for TLS" // such a broker hangs up at a CONNECT
	}
	f.Diagnostics = []core.Diagnostic{{Path: "url", Fix: fix}}
	return f
}

// refusedFile is the fault of a file at the beginning.
func refusedFile(err error) *core.Fault {
	if e, ok := errors.AsType[*fileError](err); ok {
		return e.fault()
	}
	return Explain("read the files of Pulsar's security", err)
}
