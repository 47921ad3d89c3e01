// SPDX-License-Identifier: Apache-2.0

// Package file is the transport over stream files: `.ss` files of records that
// carry a stream key, a sequence, a time and, in an envelope, headers. Files are
// exchanged with the reference system in both directions.
//
// A subscription reads one key, the keys with a prefix ("orders.*") or all of
// them ("*"). It is live and goes on with what is written, or a replay that ends
// where the file does. Without a group nothing is acked and nothing comes back;
// with one the position is kept beside the file, and what is unsettled comes
// again.
//
// # Caveats
//
// One process writes a path at a time. A replay of a key whose handler retries
// makes the file longer: its copies are appended, and the next replay reads
// them.
package file

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// Name is the transport's name.
const Name = "file"

// version is the plugin's own.
const version = "0.1.0"

// The limits of one message.
const (
	// MaxMessage is the most bytes of payload and headers, the protocol's own
	// limit.
	MaxMessage = 64 << 20
	// MaxHeaders is the most headers.
	MaxHeaders = envelope.MaxHeaders
	// MaxPublish and MaxPublishHeaders are the limits of what is published: who
	// reads the record adds its sequence.
	MaxPublish        = MaxMessage - (len(envelope.SequenceHeader) + envelope.MaxDigits)
	MaxPublishHeaders = MaxHeaders - 1
)

// Option tunes a Transport.
type Option func(*Transport)

// Clock replaces time.Now for the times of files and records.
func Clock(now func() time.Time) Option {
	return func(t *Transport) { t.now = now }
}

// Transport is the stream file transport.
type Transport struct {
	now func() time.Time
}

// New returns the transport.
func New(opts ...Option) *Transport {
	t := &Transport{now: time.Now}
	for _, o := range opts {
		o(t)
	}
	return t
}

// Describe says what a stream file can do at most.
func (t *Transport) Describe() pluginapi.Spec {
	const anyKey = "the key"
	return pluginapi.Spec{
		Name:         Name,
		Version:      version,
		Settings:     pluginapi.SchemaOf[settings.Settings](),
		Subscription: pluginapi.SchemaOf[settings.Subscription](),
		Ceilings: []core.Capabilities{
			capabilities(anyKey, false),
			pluginapi.HeldCapabilities(capabilities(anyKey, true)),
		},
		Publishing: publishing(settings.FsyncEach),
		Seeks:      true,
	}
}

// Configure binds the settings and refuses those that cannot work, all at once.
func (t *Transport) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	var set settings.Settings
	if err := s.Bind(&set); err != nil {
		return nil, err
	}
	if wrong := check(&set); len(wrong) > 0 {
		return nil, &core.Fault{Code: core.FaultInvalid, Message: "configure file", Diagnostics: wrong}
	}
	return newEndpoint(t, s.Endpoint, set, s.Logger), nil
}
