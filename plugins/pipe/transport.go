// SPDX-License-Identifier: Apache-2.0

// Package pipe is the transport over the host's standard input and output:
// lines that carry a stream key, a sequence and, in an envelope, headers, or
// plain lines. It makes a service a stage of a pipeline.
//
// # Caveats
//
// Nothing is acknowledged and nothing comes back: a line that was read is gone
// from the input. Half a line cannot be taken back, so the process is never
// started again after a crash.
package pipe

import (
	"encoding/base64"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// Name is the transport's name.
const Name = "pipe"

// The limits of one message and one line.
const (
	// MaxMessage is the most bytes of payload and headers, the protocol's own
	// limit.
	MaxMessage = 64 << 20
	// MaxHeaders is the most headers.
	MaxHeaders = envelope.MaxHeaders
	// MaxPublish and MaxPublishHeaders are the limits of what is published: who
	// reads the line adds its number.
	MaxPublish        = MaxMessage - (len(envelope.SequenceHeader) + envelope.MaxDigits)
	MaxPublishHeaders = MaxHeaders - 1
	// maxHead is what stands before a payload at most: brackets, time, key and
	// two numbers, with blanks to spare.
	maxHead = 1 << 10
)

// MaxLine is the longest line that is read: the largest message with the most
// headers, after base64. A longer one is reported and skipped.
func MaxLine() int {
	return maxHead + len("rs1:") + base64.StdEncoding.EncodedLen(MaxMessage+8*MaxHeaders+4)
}

// version is the plugin's own.
const version = "0.1.0"

// Option tunes a Transport.
type Option func(*Transport)

// Clock replaces time.Now for the times on lines.
func Clock(now func() time.Time) Option {
	return func(t *Transport) { t.now = now }
}

// Transport is the pipe transport.
type Transport struct {
	now     func() time.Time
	maxLine int
}

// New returns the transport.
func New(opts ...Option) *Transport {
	t := &Transport{now: time.Now, maxLine: MaxLine()}
	for _, o := range opts {
		o(t)
	}
	return t
}

// Describe says what a pipe can do.
func (t *Transport) Describe() pluginapi.Spec {
	return pluginapi.Spec{
		Name:         Name,
		Version:      version,
		NeverRestart: true,
		WantsStdio:   true,
		Settings:     pluginapi.SchemaOf[settings.Settings](),
		Ceilings:     []core.Capabilities{{Address: "the key, with loopback", Order: core.OrderTotal}},
		Publishing: core.Publishing{
			Confirms: core.ConfirmHandedOver, Retains: core.RetainProcess, Headers: core.HeadersEnveloped,
			Repeats: true, MaxBytes: int64(MaxPublish), MaxHeaders: MaxPublishHeaders,
		},
		LinkStates: true,
	}
}

// Configure binds the settings.
func (t *Transport) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	var set settings.Settings
	if err := s.Bind(&set); err != nil {
		return nil, err
	}
	if s.Stdio == nil {
		return nil, &core.Fault{
			Code:    core.FaultInvalid,
			Message: "configure pipe",
			Diagnostics: []core.Diagnostic{{
				Message: "the endpoint has no standard input and output",
				Fix:     "attach it with stdio: true; one endpoint of a host can have them",
			}},
		}
	}
	return &endpoint{transport: t, settings: set, stdio: s.Stdio, log: s.Logger}, nil
}
