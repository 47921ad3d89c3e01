// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
)

// limits are what the server of the last connection allows.
type limits struct {
	mu   sync.Mutex
	last client.Limits
}

func (l *limits) set(now client.Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = now
}

func (l *limits) get() client.Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
