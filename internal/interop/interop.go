// SPDX-License-Identifier: Apache-2.0

// Package interop runs implementations by others of what longshore reads and
// writes, for tests in both directions.
//
// The SeaStreamer file client is a program of a few lines around the crate
// sea-streamer-file, in folder seastreamer. tools/seastreamer.sh builds it.
package interop

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// longestLine holds a record of 64 MiB in hex digits and its head.
const longestLine = 256 << 20

// Program returns the path of the built client, and fails the test when it is
// not there.
func Program(tb testing.TB) string {
	tb.Helper()
	path, err := program()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// program is where tools/seastreamer.sh puts what it builds of these sources.
func program() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("find the client's sources: no caller")
	}
	dir := filepath.Join(filepath.Dir(file), "seastreamer")
	sources, err := filepath.Glob(filepath.Join(dir, "src", "*.rs"))
	if err != nil {
		return "", fmt.Errorf("find the client's sources: %w", err)
	}
	slices.Sort(sources)
	sum := sha256.New()
	for _, name := range append([]string{filepath.Join(dir, "Cargo.toml"), filepath.Join(dir, "Cargo.lock")}, sources...) {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("find the client's sources: %w", err)
		}
		sum.Write(text)
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the built client: %w", err)
		}
		cache = filepath.Join(home, ".cache")
	}
	path := filepath.Join(cache, "longshore", "seastreamer", hex.EncodeToString(sum.Sum(nil))[:16], "longshore-seastreamer")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the SeaStreamer client is not built: run make needs: %w", err)
	}
	return path, nil
}

// Record is a record as the client takes and shows it.
type Record struct {
	Key      string `json:"key"`
	Shard    uint64 `json:"shard"`
	Sequence uint64 `json:"sequence"`
	Time     int64  `json:"time"` // ms since the epoch
	Payload  Bytes  `json:"payload"`
}

// Bytes travel as hex digits.
type Bytes []byte

// UnmarshalText takes hex digits.
func (b *Bytes) UnmarshalText(text []byte) error {
	*b = make([]byte, hex.DecodedLen(len(text)))
	_, err := hex.Decode(*b, text)
	return err
}

// Equal is for comparisons: no bytes are no bytes.
func (b Bytes) Equal(other Bytes) bool { return bytes.Equal(b, other) }

// End is why a reader of the client ended.
type End struct {
	Why   string `json:"end"`   // eos, eof, seek (refused), error
	Error string `json:"error"` // the client's words
}

// line is what the program prints: one of these.
type line struct {
	Record
	End
	Header
	Beacon
	Ready bool `json:"ready"`
}

func parse(text []byte) (l line, err error) {
	if err := json.Unmarshal(text, &l); err != nil {
		return line{}, fmt.Errorf("parse a line of the client, %.100q: %w", text, err)
	}
	return l, nil
}

// legal fails the test where the client would read its path, which it takes out
// of a URL with a list of nodes, as another one.
func legal(tb testing.TB, path string) {
	tb.Helper()
	if strings.ContainsAny(path, ",?#% ") {
		tb.Fatalf("the SeaStreamer client does not take the path %s", path)
	}
}

// run runs the program to its end and returns its lines.
func run(tb testing.TB, stdin []byte, args ...string) []line {
	tb.Helper()
	legal(tb, args[1])
	var out, log bytes.Buffer
	cmd := exec.CommandContext(tb.Context(), Program(tb), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &log
	if err := cmd.Run(); err != nil {
		tb.Fatalf("run the SeaStreamer client, %s: %v\n%s", strings.Join(args, " "), err, &log)
	}
	var lines []line
	scan := bufio.NewScanner(&out)
	scan.Buffer(nil, longestLine)
	for scan.Scan() {
		l, err := parse(scan.Bytes())
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		tb.Fatalf("read the lines of the client: %v", err)
	}
	return lines
}
