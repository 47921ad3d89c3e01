// SPDX-License-Identifier: Apache-2.0

// Command longshore-bench-zmq is one end of a ZeroMQ connection, for the
// benchmarks:
//
//	longshore-bench-zmq LIBRARY ROLE bind|connect ADDRESS PAYLOAD HEADERS
//
// LIBRARY is zmq4, the sockets of go-zeromq/zmq4 as they are, or longshore, our
// transport without SDK and host. ROLE is push, pull, pub or dealer (one request
// after another); longshore has no pub. It prints its address as JSON, and
// then, for each line on its standard input, what it has done since it started,
// until that ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/bench/peer"
	"github.com/longshore-go/longshore/internal/bench/source"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-bench-zmq:", err)
		os.Exit(1)
	}
}

// end is one end of a connection.
type end struct {
	role     string
	bind     bool
	address  string
	messages []core.Message // that take turns
	count    atomic.Uint64  // sent, received or answered
	trips    peer.Trips     // of a dealer
	at       chan string    // the address, once it is known
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 6 {
		return fmt.Errorf("got %d arguments: use LIBRARY ROLE bind|connect ADDRESS PAYLOAD HEADERS", len(args))
	}
	payload, err := strconv.Atoi(args[4])
	if err != nil {
		return fmt.Errorf("read PAYLOAD: %w", err)
	}
	headers, err := strconv.Atoi(args[5])
	if err != nil {
		return fmt.Errorf("read HEADERS: %w", err)
	}
	e := &end{
		role: args[1], bind: args[2] == "bind", address: args[3],
		messages: source.Options{Payload: payload, Headers: headers}.Messages(), at: make(chan string, 1),
	}
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch args[0] {
	case "zmq4":
		go func() { failed <- e.zmq4(ctx) }()
	case "longshore":
		go func() { failed <- e.longshore(ctx) }()
	default:
		return fmt.Errorf("no library %q: use zmq4 or longshore", args[0])
	}
	told := make(chan error, 1)
	go func() { told <- e.tell(in, out) }()
	select {
	case err := <-failed:
		return err
	case err := <-told: // whatever is under way is of no use to anybody
		return err
	}
}

// tell answers until in ends.
func (e *end) tell(in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	if err := answers.Encode(peer.Address{Address: <-e.at}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		used, err := source.Used()
		if err != nil {
			return err
		}
		s := peer.State{Messages: e.count.Load(), CPU: used.CPU, Allocs: used.Allocs}
		s.P50, s.P99 = e.trips.Take()
		if err := answers.Encode(s); err != nil {
			return err
		}
	}
	return lines.Err()
}
