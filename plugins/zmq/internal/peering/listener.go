// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/longshore-go/longshore/core"
)

// listener is a socket that takes connections.
type listener struct {
	net.Listener
	address Address // with the port
	chosen  bool    // the system chose it
	file    *file   // of ipc
	once    sync.Once
}

// listen opens an address. A port that was chosen for an earlier listener is
// tried first, so that peers find the endpoint again.
func listen(ctx context.Context, a Address, resume []byte, log *slog.Logger) (*listener, *core.Fault) {
	if a.Network == IPC {
		return listenIPC(ctx, a)
	}
	if a.Port != 0 {
		return listenTCP(ctx, a)
	}
	former := formerPort(resume)
	if former == 0 {
		return listenTCP(ctx, a)
	}
	again := a
	again.Port = former
	l, f := listenTCP(ctx, again)
	if f != nil {
		if l, other := listenTCP(ctx, a); other == nil {
			log.Warn("listens on another port than before: peers that know the former one do not find it",
				"address", l.address.String(), "former", again.String(), "reason", f.Message)
			l.chosen = true
			return l, nil
		}
		return nil, f
	}
	l.chosen = true
	return l, nil
}

// listenTCP opens an address; package net sets SO_REUSEADDR, so that connections
// of an earlier process that are still ending are in nobody's way.
func listenTCP(ctx context.Context, a Address) (*listener, *core.Fault) {
	network, address := a.system()
	c := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := c.Listen(ctx, network, address)
	if err != nil {
		return nil, listenFault(a, err)
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, listenFault(a, errors.Join(fmt.Errorf("listens on %s", l.Addr()), l.Close()))
	}
	chosen := a.Port == 0
	a.Port = uint16(tcp.Port)
	return &listener{Listener: l, address: a, chosen: chosen}, nil
}

// resumeForm is how resume bytes are written.
const resumeForm = "zmq 1 port %d"

// resume returns the port that was chosen, so that it stays.
func (l *listener) resume() []byte {
	if !l.chosen {
		return nil
	}
	return fmt.Appendf(nil, resumeForm, l.address.Port)
}

// formerPort reads resume bytes, 0 = they say none.
func formerPort(resume []byte) uint16 {
	var port uint16
	if _, err := fmt.Sscanf(string(resume), resumeForm, &port); err != nil {
		return 0
	}
	return port
}

// close takes no further connections. The file goes first: its inode is this
// listener's for as long as the socket is open, and could be another's behind.
func (l *listener) close(log *slog.Logger) {
	l.once.Do(func() {
		if l.file != nil {
			if err := l.file.remove(); err != nil {
				log.Warn("the socket's file stays", "address", l.address.String(), "reason", err.Error())
			}
		}
		_ = l.Close() // a listening socket has nothing to write
	})
}

// listenFault is the fault of an address that cannot be listened on.
func listenFault(a Address, err error) *core.Fault {
	f := &core.Fault{Code: core.FaultUnavailable, Message: fmt.Sprintf("listen on %s: %v", a, bare(err))}
	fix := "look at the reason the system gives"
	var lookup *net.DNSError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Code, f.Transient, fix = core.FaultCanceled, true, "start again"
	case errors.Is(err, syscall.EADDRINUSE):
		f.Code, f.Transient, fix = core.FaultConflict, true, "stop the program that listens there, or use another address"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.Code, fix = core.FaultInvalid, "use an address of this machine, or * for all of them"
	case errors.Is(err, os.ErrPermission):
		f.Code, fix = core.FaultDenied, "use an address that this user may listen on"
	case errors.As(err, &lookup):
		f.Code, fix = core.FaultNotFound, "use a name or IP of this machine, or * for all of them"
	}
	f.Diagnostics = []core.Diagnostic{{Path: "bind", Fix: fix}}
	return f
}

// bare is an error of package net without its prefix of operation and addresses,
// which vary from try to try and are named by the caller.
func bare(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return bare(op.Err)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}
