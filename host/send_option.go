// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// SendOption tunes one publish, or one [Request]. It may be made once and used
// for many.
type SendOption func(*send)

// send is what the options of one publish say.
type send struct {
	headers     core.Headers
	contentType string
	dedupID     string
	after       time.Duration
	limit       time.Duration // 0 = none
	options     []byte
	err         error // the first option that is wrong
}

// WithHeader adds a header. Given several times under one name all of them are
// sent, in order.
func WithHeader(name, value string) SendOption {
	return func(s *send) { s.headers = append(s.headers, core.Header{Name: name, Value: []byte(value)}) }
}

// WithContentType sets the header content-type and the codec. A type without a
// codec takes []byte or core.Message only. The default adds the header to
// protobuf messages alone, and to none where the destination carries no headers.
func WithContentType(t string) SendOption { return func(s *send) { s.contentType = t } }

// WithDedupID names the message, so that one sent again under the same id
// arrives once where the destination drops doubles (core.Publishing.Dedups, see
// longshore plugin describe). Elsewhere the id has no effect.
func WithDedupID(id string) SendOption { return func(s *send) { s.dedupID = id } }

// WithDelay asks the transport to deliver after d. It is refused where the
// destination does not delay, or not that long.
func WithDelay(d time.Duration) SendOption { return func(s *send) { s.after = d } }

// WithTimeout is how long a publish may take from the wait for room on, each
// time that middleware passes it on: after d it fails with an error that is
// context.DeadlineExceeded and tells whether the message may have been sent. The
// default is what [PublishTimeout] says. For a [Request] it is the time until
// the reply. [Publisher.PublishWith] refuses it.
func WithTimeout(d time.Duration) SendOption {
	return func(s *send) {
		s.limit = d
		if d <= 0 {
			s.fail(fmt.Errorf("WithTimeout: %v is no limit; use a time above 0", d))
		}
	}
}

// WithOptions gives the transport's own options of the message: a struct of its
// settings package or a map, which is read now. They are checked by the
// transport's schema before the message is sent.
func WithOptions(v any) SendOption {
	options, err := pluginapi.EncodeSettings(v)
	if v == nil || string(options) == "null" {
		options = nil
	}
	return func(s *send) {
		s.options = options
		if err != nil {
			s.fail(fmt.Errorf("encode options: %w", err))
		}
	}
}

// fail keeps the first error.
func (s *send) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}
