// SPDX-License-Identifier: Apache-2.0

//go:build !race

package writer

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/core"
)

func TestAppendAllocatesNothing(t *testing.T) {
	headers := core.Headers{{Name: "x-tenant", Value: []byte("acme")}, {Name: "n", Value: []byte("two\nlines")}}
	for _, sync := range []Sync{SyncNone, SyncInterval, SyncEach} {
		t.Run(fmt.Sprint(sync), func(t *testing.T) {
			w := open(t, filepath.Join(folder(t), "orders.ss"), Options{Sync: sync, Interval: 16 << 10})
			batch := make([]Entry, 16)
			for i := range batch {
				batch[i] = Entry{Key: fmt.Sprint("key.", i%5), Payload: bytes.Repeat([]byte("x"), 512)}
				if i%2 == 0 {
					batch[i].Headers = headers
				}
			}
			confirmed := make(chan struct{}, len(batch))
			done := func(int, uint64, error) { confirmed <- struct{}{} }
			run := func() {
				w.Append(batch, done)
				for range batch {
					<-confirmed
				}
			}
			for range 10 {
				run()
			}
			if got := testing.AllocsPerRun(50, run); got != 0 {
				t.Errorf("%v allocations a batch", got)
			}
		})
	}
}
