// SPDX-License-Identifier: Apache-2.0

package link

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto" // registers the codec that generated messages go to
	"google.golang.org/grpc/mem"

	"github.com/longshore-go/longshore/internal/frame"
)

// ServerOptions are what a gRPC server of a plugin needs: the codec and the
// protocol's limits in both directions (gRPC's own are 4 MiB).
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(frame.MaxWireSize),
		grpc.MaxSendMsgSize(frame.MaxWireSize),
	}
}

// callOptions are what every call of a client needs.
func callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.ForceCodecV2(newCodec()),
		grpc.MaxCallRecvMsgSize(frame.MaxWireSize),
		grpc.MaxCallSendMsgSize(frame.MaxWireSize),
	}
}

// writer is a wire message that writes itself.
type writer interface {
	Size() int
	Append(b []byte) []byte
}

// reader is a wire message that reads itself from a slab, which it takes over.
type reader interface {
	read(slab *[]byte) error
}

// codec sends what has its own form in that, through pooled buffers, and
// everything else through the codec that is registered for protobuf. Both are
// protobuf on the wire, so it has that name, and other services of the server
// work as before.
type codec struct {
	registered encoding.CodecV2
}

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name names the wire form.
func (codec) Name() string { return protocodec.Name }

// lone is the size up to which gRPC does not give buffers back to a pool.
const lone = 1 << 10

// Marshal writes v into one buffer.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	w, ok := v.(writer)
	if !ok {
		return c.registered.Marshal(v)
	}
	n := w.Size()
	if n <= lone {
		return mem.BufferSlice{mem.SliceBuffer(w.Append(make([]byte, 0, n)))}, nil
	}
	b := frame.Pool{}.Get(n)
	*b = w.Append((*b)[:0])
	return mem.BufferSlice{mem.NewBuffer(b, frame.Pool{})}, nil
}

// Unmarshal reads v. gRPC hands over pieces of 16 KiB, which are joined in a
// slab of the frames' own pool.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(reader)
	if !ok {
		return c.registered.Unmarshal(data, v)
	}
	slab := frame.Pool{}.Get(data.Len())
	data.CopyTo(*slab)
	return r.read(slab)
}
