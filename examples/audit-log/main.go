// SPDX-License-Identifier: Apache-2.0

// Command audit-log writes down what is done before it counts as done, and has
// readers that go on where they were. main_test.go tests it.
//
//	audit-log record FILE < ACTIONS   writes each action down and prints it when it is on the disk
//	audit-log read FILE GROUP         prints what the group has not read yet, and ends
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/longshore-go/longshore/host"
	file "github.com/longshore-go/longshore/plugins/file/settings"
	pipe "github.com/longshore-go/longshore/plugins/pipe/settings"
)

// Action is what somebody did.
type Action struct {
	Who string `json:"who"`
	Did string `json:"did"`
}

func main() {
	h := host.New()
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "record":
		record(h, args[1])
	case len(args) == 3 && args[0] == "read":
		read(h, args[1], args[2], os.Stdout)
	default:
		log.Fatal("usage: audit-log record FILE, or audit-log read FILE GROUP")
	}
	if err := host.RunUntilSignal(context.Background(), h); err != nil {
		log.Fatal(err)
	}
}

// record writes actions down. With FsyncEach a receipt says that the entry is on
// the disk; entries that wait at the same time share one fsync.
func record(h *host.Host, path string) {
	lines := h.Endpoint("lines", host.Plugin{Name: "pipe", Stdio: &host.Stdio{}}, pipe.Settings{Loopback: true})
	audit := h.Endpoint("audit", host.Plugin{Name: "file"}, file.Settings{Path: path, Fsync: file.FsyncEach})
	entries := host.To[Action](h, audit.To("actions"))
	host.Handle(lines.Subscription("actions"), func(ctx context.Context, m *host.Message[Action]) error {
		_, err := entries.Publish(ctx, m.Value)
		return err // what is not written down is not done: it is tried again
	}, host.Forward(lines.To("done")), host.MaxAttempts(3), host.DeadLetterTo(lines.To("refused")))
}

// read prints what a group has not read yet. What is acked is kept beside the
// file under the group's name; a reader that dies before it acks reads once more.
func read(h *host.Host, path, group string, out io.Writer) {
	audit := h.Endpoint("audit", host.Plugin{Name: "file"}, file.Settings{Path: path, ExistingOnly: true})
	actions := audit.Subscription("actions", host.Options(file.Subscription{Group: group, Replay: true}))
	host.Handle(actions, func(_ context.Context, m *host.Message[Action]) error {
		_, err := fmt.Fprintf(out, "%s: %s %s\n", group, m.Value.Who, m.Value.Did)
		return err
	})
}
