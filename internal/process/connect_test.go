// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

// TG-23: how long a mute plugin is waited for is the start limit's matter alone.
func TestConnectionIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		}
		options := append(dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
		conn, err := grpc.NewClient("passthrough:///mute", options...)
		if err != nil {
			t.Fatal(err)
		}
		conn.Connect()
		time.Sleep(time.Hour)
		if got := conn.GetState(); got != connectivity.Connecting {
			t.Errorf("after an hour it is %v", got)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}
