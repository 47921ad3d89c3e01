// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// A seek that fails says whether any partition has moved, or may have.
func TestSeekMovesSome(t *testing.T) {
	refused, lost := &client.ServerError{Code: wire.AuthorizationError, Message: "no"}, &client.LostError{Host: "h:1", Reason: io.EOF}
	for _, tt := range []struct {
		name   string
		errs   []error // of each partition
		fails  bool
		partly bool
	}{
		{"all move", []error{nil, nil}, false, false},
		{"one of two", []error{nil, refused}, true, true},
		{"none of two", []error{refused, refused}, true, false},
		{"none of one", []error{refused}, true, false},
		{"acks had no answer", []error{errUnanswered}, true, false},
		{"nobody knows of one", []error{lost}, true, true},
		{"nobody knows of one of two", []error{refused, lost}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &Feed{moving: make(chan struct{}, 1), partitions: map[topic.Name]*Partition{}, ctx: t.Context()}
			for i, err := range tt.errs {
				n := topic.Name{Tenant: "public", Namespace: "default", Local: "t", Partition: i}
				p := &Partition{Source: message.NewSource(n, "t"), seeks: make(chan *seek), done: make(chan struct{})}
				f.partitions[n] = p
				go func() { (<-p.seeks).done <- err }()
			}
			err := f.Seek(context.WithoutCancel(t.Context()), pluginapi.Position{Kind: pluginapi.PositionBeginning})
			if fails, partly := err != nil, errors.As(err, new(*pluginapi.PartlyMovedError)); fails != tt.fails || partly != tt.partly {
				t.Errorf("%v, partly moved %t; want an error %t, partly moved %t", err, partly, tt.fails, tt.partly)
			}
			if err != nil && !errors.As(err, new(*core.Fault)) {
				t.Errorf("%v is no fault", err)
			}
		})
	}
}
