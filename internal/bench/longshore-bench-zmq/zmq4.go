// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-zeromq/zmq4"
)

// queued is what libzmq keeps for a subscriber by default. It is no limit of a
// subscriber here, but of all that waits to be written.
const queued = 1000

// zmq4 is the end as a socket of go-zeromq/zmq4, which sends every message by
// one call, its faster way.
func (e *end) zmq4(ctx context.Context) error {
	socket, err := e.socket(ctx)
	if err != nil {
		return err
	}
	if err := e.attach(socket); err != nil {
		return err
	}
	messages := make([]zmq4.Msg, len(e.messages))
	for i, m := range e.messages {
		var lines []string
		for _, h := range m.Headers {
			lines = append(lines, h.Name+": "+string(h.Value))
		}
		messages[i] = zmq4.NewMsgFrom([]byte(m.Name), []byte(strings.Join(lines, "\n")), m.Payload)
	}
	for i := 0; ; i++ {
		if err := e.step(socket, messages[i%len(messages)]); err != nil {
			return err
		}
		e.count.Add(1)
	}
}

// step sends a message, reads one, or does both.
func (e *end) step(socket zmq4.Socket, m zmq4.Msg) error {
	switch e.role {
	case "pull":
		_, err := socket.Recv()
		return err
	case "dealer":
		at := time.Now()
		if err := socket.SendMulti(m); err != nil {
			return err
		}
		_, err := socket.Recv()
		e.trips.Add(time.Since(at))
		return err
	}
	return socket.SendMulti(m)
}

func (e *end) socket(ctx context.Context) (zmq4.Socket, error) {
	switch e.role {
	case "push":
		return zmq4.NewPush(ctx), nil
	case "pull":
		return zmq4.NewPull(ctx), nil
	case "dealer":
		return zmq4.NewDealer(ctx), nil
	case "pub":
		s := zmq4.NewPub(ctx)
		return s, s.SetOption(zmq4.OptionHWM, queued)
	}
	return nil, fmt.Errorf("zmq4 has no role %q here: use push, pull, pub or dealer", e.role)
}

// attach listens or dials, and tells where.
func (e *end) attach(socket zmq4.Socket) error {
	if !e.bind {
		if err := socket.Dial(e.address); err != nil {
			return err
		}
		e.at <- e.address
		return nil
	}
	if err := socket.Listen(e.address); err != nil {
		return err
	}
	if path, ok := strings.CutPrefix(e.address, "ipc://"); ok {
		e.at <- "ipc://" + path
		return nil
	}
	e.at <- "tcp://" + socket.Addr().String()
	return nil
}
