// SPDX-License-Identifier: Apache-2.0

package frame

import "sync"

// tiers are the sizes of pooled buffers. Frames end at MaxBytes, so a full one
// with its last message fits 192 or 320 KiB; small tiers keep lone messages
// from holding a slab that is mostly empty.
var tiers = [...]int{
	2 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 192 << 10, 320 << 10, 512 << 10, 1 << 20,
}

// Pool is the pool of encode buffers and slabs. It fits gRPC's BufferPool. All
// values share their buffers; nothing above 1 MiB is kept.
type Pool struct{}

// buffers are the pools behind Pool, one a tier.
var buffers [len(tiers)]sync.Pool

// Get returns a buffer of n bytes with any content.
func (Pool) Get(n int) *[]byte {
	for i, size := range tiers {
		if n > size {
			continue
		}
		if b, ok := buffers[i].Get().(*[]byte); ok {
			*b = (*b)[:n]
			return b
		}
		b := make([]byte, n, size)
		return &b
	}
	b := make([]byte, n)
	return &b
}

// Put gives a buffer back. Nothing of it may be used after that.
func (Pool) Put(b *[]byte) {
	poison((*b)[:cap(*b)])
	for i, size := range tiers {
		if cap(*b) == size {
			buffers[i].Put(b)
			return
		}
	}
}
