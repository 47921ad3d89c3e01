// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// alone runs a test in a process of its own, where it may change what a process
// has. It reports whether this is that process.
func alone(t *testing.T, change func(*exec.Cmd)) bool {
	t.Helper()
	const mark = "LONGSHORE_TEST_ALONE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), mark+"="+t.Name())
	if change != nil {
		change(cmd)
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil && errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skip(string(out))
	}
	return false
}

// Without a descriptor nothing can be accepted: that is told of once a second,
// tried with pauses, and over once there are some.
func TestWithoutDescriptors(t *testing.T) {
	if !alone(t, nil) {
		return
	}
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	address := s.Addresses()[0]
	early := foreign(t, address, zmq4.Push)
	s.peers(t, 1)
	limit := unix.Rlimit{Cur: uint64(descriptors(t) + 10), Max: 1 << 10}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var taken []net.Conn
	for { // until this side finds none either
		nc, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp://"))
		if err != nil {
			break
		}
		taken = append(taken, nc)
	}
	if len(taken) == 0 {
		t.Fatal("not one descriptor was left")
	}
	zmqtest.Until(t, "a second line", func() bool {
		return len(s.log.with("no connection can be accepted", "too many open files", "raise the limit")) >= 2
	})
	warned(t, s, began, "no connection can be accepted")
	if n := s.Counters().AcceptErrors; n > int64(40*(1+time.Since(began)/time.Second)) {
		t.Errorf("%d tries in %v: it does not pause", n, time.Since(began))
	}
	send(t, early, "m1")
	zmqtest.Until(t, "a message of the peer that is there", func() bool { return s.have() == 1 })
	for _, nc := range taken {
		nc.Close()
	}
	late := foreign(t, address, zmq4.Push)
	send(t, late, "m2")
	zmqtest.Until(t, "a message of a later peer", func() bool { return s.have() == 2 })
}

// A machine that goes without a word is found by what it does not acknowledge.
// The test is in a network of its own, whose only interface goes down.
func TestMachinesThatAreGone(t *testing.T) {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	if !alone(t, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWUSER, UidMappings: ids}
	}) {
		return
	}
	if err := loopback(true); err != nil {
		t.Skipf("no network of its own: %v", err)
	}
	const limit = 900 * time.Millisecond
	s := &served{log: newLines()}
	p, err := start(t.Context(), s.config(zmq4.Push, bound(t, "tcp://127.0.0.1:0")), workings{probe: limit / 9, unanswered: limit})
	if err != nil {
		t.Fatal(err)
	}
	s.Peering = p
	defer s.end(t)
	foreign(t, s.Addresses()[0], zmq4.Pull)
	s.peers(t, 1)
	zmqtest.Until(t, "the handshake is acknowledged", func() bool {
		_, outstanding := unanswered(s.Peers()[0].Conn.NetConn())
		return !outstanding
	})
	if err := loopback(false); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	zmqtest.Until(t, "nothing happens to what is idle", func() bool { return time.Since(began) > limit*3/2 })
	if s.Counters().Peers != 1 {
		t.Fatal("a peer that was sent nothing is gone")
	}
	push(s.Peers()[0], "m1", outq.Ticket{})
	began = time.Now()
	s.peers(t, 0)
	if took := time.Since(began); took < limit || took > patience/2 {
		t.Errorf("the peer went after %v, want %v", took, limit)
	}
	zmqtest.Until(t, "a line", func() bool { return len(s.log.with("level=WARN", "acknowledged nothing for 900ms")) == 1 })
}

// loopback turns the loopback interface on or off.
func loopback(on bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if on {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	} else {
		r.SetUint16(0)
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
