// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// The service file does what its comment says.
func TestService(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0") // of the programs that are built, so that what they import is compiled once
	s := startServer(t)
	bin := t.TempDir()
	for _, b := range [][2]string{{".", "."}, {"../..", "./cmd/longshore"}} {
		if out, err := exec.Command("go", "build", "-C", b[0], "-o", bin+"/", b[1]).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, order := range []string{"three loaves", "no bread"} {
		if err := s.client.XAdd(t.Context(), &redis.XAddArgs{Stream: "orders", Values: []string{"p", order, "h:shop", "north"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "longshore"), "run", "service.yaml")
	cmd.Env = append(os.Environ(), "LONGSHORE_PLUGIN_DIR="+bin, "REDIS_ADDRESS="+s.address())
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("the service said:\n%s", log.String())
		}
	}()
	done, dead := s.wait("orders.done"), s.wait("orders.dead")
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff("three loaves, attempt 1", done["p"]); diff != "" {
		t.Errorf("orders.done (-want +got):\n%s", diff)
	}
	if dead["p"] != "no bread" || dead["h:shop"] != "north" {
		t.Errorf("orders.dead has %v", dead)
	}
}

// wait waits for the first entry of a stream.
func (s *server) wait(stream string) map[string]string {
	s.t.Helper()
	var list []redis.XMessage
	s.until(stream+" has an entry", func() bool {
		list, _ = s.client.XRange(s.t.Context(), stream, "-", "+").Result()
		return len(list) > 0
	})
	got := make(map[string]string)
	for k, v := range list[0].Values {
		got[k] = fmt.Sprint(v)
	}
	return got
}
