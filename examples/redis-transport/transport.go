// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// maxMessage bounds payload and headers of a message. Redis takes more, and does
// nothing else while it copies it.
const maxMessage = 16 << 20

// settings are those of an endpoint.
type settings struct {
	Address     string        `json:"address" doc:"host:port, or unix:/path of a socket" default:"127.0.0.1:6379"`
	TLS         bool          `json:"tls" doc:"speak TLS; the server's certificate is checked"`
	Username    string        `json:"username" doc:"user of the server's access list"`
	Password    core.Secret   `json:"password" doc:"password of the user"`
	DB          int           `json:"db" doc:"number of the database" default:"0" min:"0"`
	Group       string        `json:"group" doc:"consumer group that subscriptions read in" default:"longshore" min:"1"`
	Hold        core.Duration `json:"hold" doc:"how long a delivery stays with its consumer" default:"30s" min:"100ms" max:"24h"`
	Timeout     core.Duration `json:"timeout" doc:"the longest that the server may take to answer" default:"5s" min:"100ms" max:"1m"`
	Durable     bool          `json:"durable" doc:"the server writes an append-only file, so it remembers what is pending"`
	DeleteAcked bool          `json:"delete_acked" doc:"delete entries once they are acked; only where one group reads the stream"`
}

// options are those of a subscription.
type options struct {
	Group string `json:"group" doc:"consumer group, instead of the endpoint's"`
	Start string `json:"start" doc:"where a group that does not exist yet begins" enum:"beginning,end" default:"beginning"`
}

// transport is Redis Streams. It has no state.
type transport struct{}

// Describe says the widest that any settings allow.
func (transport) Describe() pluginapi.Spec {
	ceiling := capabilities("the stream", 24*time.Hour, true)
	return pluginapi.Spec{
		Name:         "redis",
		Version:      "0.1.0",
		Settings:     pluginapi.SchemaOf[settings](),
		Subscription: pluginapi.SchemaOf[options](),
		Ceilings:     []core.Capabilities{ceiling},
		Publishing:   publishing,
		LinkStates:   true,
	}
}

// capabilities are those of every delivery of a stream. What makes each true:
//
//   - Requeue and MaxDelay: an entry whose idle time is set to hold-d is due
//     after d, and d cannot be more than hold.
//   - MaxHold and Unsettled: an entry that has been idle for hold is delivered
//     again, by whoever looks next.
//   - Extend: its idle time is set back.
//   - Counts: the group counts the deliveries of each pending entry.
//   - Reject is left out: Redis knows one way to be rid of an entry, the ack.
//   - Order is left out: consumers of a group take turns, and what comes again
//     comes late.
//   - Durable is what the settings say, and what the server says where that is
//     less, see conn.go.
func capabilities(stream string, hold time.Duration, durable bool) core.Capabilities {
	return core.Capabilities{
		Ack:       core.AckSingle,
		Requeue:   core.RequeueDelayed,
		MaxDelay:  hold,
		MaxHold:   hold,
		Extend:    true,
		Counts:    core.CountNative,
		Address:   stream,
		Unsettled: core.UnsettledOnTimeout,
		Durable:   durable,
	}
}

// publishing is what every stream takes. Stored: XADD answers when the entry is
// in the stream. What a crash of the server's machine leaves of it depends on the
// server's persistence.
var publishing = core.Publishing{
	Confirms: core.ConfirmStored,
	Retains:  core.RetainTransport,
	Headers:  core.HeadersNativeBytes,
	Repeats:  true,
	MaxBytes: maxMessage,
}

// Configure binds the settings and checks what their schema cannot say.
func (transport) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	e := &endpoint{log: s.Logger}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := s.Bind(&e.settings); err != nil {
		return nil, err
	}
	if !validAddress(e.settings.Address) {
		return nil, &core.Fault{
			Code: core.FaultInvalid, Message: "configure redis",
			Diagnostics: []core.Diagnostic{{
				Path: "address", Message: "is neither host:port nor unix:/path", Fix: `write it like "127.0.0.1:6379"`,
			}},
		}
	}
	return e, nil
}

// validAddress does not look the host up: Configure does no I/O.
func validAddress(address string) bool {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return path != ""
	}
	_, port, err := net.SplitHostPort(address)
	return err == nil && port != ""
}
