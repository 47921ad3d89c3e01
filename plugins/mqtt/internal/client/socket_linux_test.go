// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A connection is set up so that a machine which has gone is found out whether bytes
// are on their way to it or not, and so that small packets leave at once.
func TestSocketOptions(t *testing.T) {
	srv := serve(t)
	_, l, _ := up(t, srv, Config{})
	want := map[int]int{unix.TCP_USER_TIMEOUT: 30_000, unix.TCP_KEEPIDLE: 15, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 3, unix.TCP_NODELAY: 1}
	err := l.socket.Control(func(fd uintptr) {
		for option, w := range want {
			if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil || got != w {
				t.Errorf("option %d is %d (%v), want %d", option, got, err, w)
			}
		}
		if on, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE); err != nil || on == 0 {
			t.Errorf("the system does not probe (%v)", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
