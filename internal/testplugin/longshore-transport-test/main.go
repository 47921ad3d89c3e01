// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-test is a plugin that does what plugins must not,
// for the tests of package process. Its mode comes from the environment.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/testplugin/control"
	"github.com/longshore-go/longshore/pluginapi"
)

func main() {
	mode := os.Getenv(control.EnvMode)
	control.At("exec")
	switch mode {
	case "exit": // before anything
		fmt.Fprintln(os.Stderr, "no license file")
		os.Exit(3)
	case "silent":
		select {}
	case "noise": // a line, as a library's init would print it
		say("Welcome to the banner library\n")
	case "flood": // without an end of line the handshake is part of it
		say(strings.Repeat("x", 100<<10))
	case "garbage":
		say(strings.Repeat("no handshake ", 40) + "\n")
		select {}
	case "version":
		say("1|99|unix|/nowhere|grpc\n")
		select {}
	case "core":
		say("7|1|unix|/nowhere|grpc\n")
		select {}
	case "netrpc":
		say("1|1|unix|/nowhere|netrpc\n")
		select {}
	case "tcp":
		say("1|1|tcp|127.0.0.1:1|grpc\n")
		select {}
	case "closes-stdout":
		_ = syscall.Close(1)
		select {}
	case "outside", "mute", "bare", "raw", "gone":
		raw(mode)
	case "chatty":
		chatty()
	case "grandchild":
		grandchild(false)
	case "runaway":
		grandchild(true)
	}
	pluginapi.Serve(&transport{mode: mode})
}

// say prints to standard output, which plugins must not.
func say(text string) { _, _ = os.Stdout.WriteString(text) }

// grandchild starts a child that inherits stdout and stderr and outlives its
// parent; one that ran away leads a session of its own.
func grandchild(session bool) {
	c := exec.Command("sleep", "600")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = os.WriteFile(os.Getenv(control.EnvArg), fmt.Appendf(nil, "%d", c.Process.Pid), 0o600)
}

// noise prints where nothing may be printed, once the plugin serves.
func noise() {
	say("printed by fmt\n")
	fmt.Fprintln(os.Stderr, "printed to stderr")
	_, _ = syscall.Write(1, []byte("written to descriptor 1\n"))
	say(strings.Repeat("y", 200<<10) + "\n")
}

// later exits after a while, as a plugin that crashes does.
func later(status int) {
	time.AfterFunc(50*time.Millisecond, func() {
		fmt.Fprintln(os.Stderr, "cannot reach the licence server")
		os.Exit(status)
	})
}
