// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/handshake"
)

// flushLimit is how long accepted publishes may take once the host is gone.
const flushLimit = time.Second

// leash waits until the host is gone, ends what is under way, and exits. It is
// the one way in which a served plugin ends.
func (p *served) leash() {
	// Nothing is ever written to it. Any error is an end as well: a leash that
	// cannot be held must not keep the process alive for ever.
	_, _ = io.Copy(io.Discard, p.stdin)

	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		p.server.abandon(ctx)
	}()
	select {
	case <-flushed:
	case <-ctx.Done(): // a transport that is deaf to its context
	}
	removeRunDir(os.Getenv(handshake.EnvRunDir))
	os.Exit(0)
}

const (
	// removeLimit bounds the removal; with the flush it stays under the two
	// seconds within which nothing of a killed host remains.
	removeLimit = 500 * time.Millisecond
	removePause = 5 * time.Millisecond
)

// removeRunDir removes the private directory until it is gone. Once is not
// enough while this very process is still making its socket in it. A host that
// has connected has removed it long ago.
func removeRunDir(path string) {
	if !filepath.IsAbs(path) || !strings.HasPrefix(filepath.Base(path), handshake.RunDirPrefix) {
		return // not one of a host's
	}
	for until := time.Now().Add(removeLimit); time.Now().Before(until); time.Sleep(removePause) {
		_ = os.RemoveAll(path)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
	}
}
