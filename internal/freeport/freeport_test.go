// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
)

// A server listens on a held port as often as it likes, and nobody else gets it:
// all that are held at a time differ, whoever is given one by the system.
func TestHold(t *testing.T) {
	const n = 200
	var mu sync.Mutex
	held := map[int]bool{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			port := Hold(t)
			mu.Lock()
			defer mu.Unlock()
			if held[port] {
				t.Errorf("port %d is held twice", port)
			}
			held[port] = true
		})
	}
	all.Wait()
	for range 5 * n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if port := l.Addr().(*net.TCPAddr).Port; held[port] {
			t.Fatalf("port %d is held, and was given to somebody", port)
		}
	}
	for port := range held {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		for range 2 {
			if c, err := net.Dial("tcp4", address); err == nil {
				_ = c.Close()
				t.Errorf("somebody listens on port %d", port)
			}
			l, err := net.Listen("tcp4", address)
			if err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp4", address)
			if err != nil {
				t.Error(err)
			} else {
				_ = c.Close()
			}
			_ = l.Close()
		}
	}
}

// Who binds to a held port by its number, and does not share it, is refused.
func TestHoldKeepsOthersOut(t *testing.T) {
	port := Hold(t)
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(s)
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
}

func TestRelease(t *testing.T) {
	port, release, err := Reserve()
	if err != nil || port == 0 {
		t.Fatal(port, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
