// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/handshake"
)

// write makes a file in a folder of its own and returns its path.
func write(t *testing.T, name string, mode os.FileMode, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func binary(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(pluginPath())
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// L-10: as many right reasons as there are ways to be wrong, each at once.
func TestWrongFiles(t *testing.T) {
	const file = handshake.FilePrefix + "test"
	other := binary(t)
	const machine, aarch64, x86 = 18, 0xb7, 0x3e // e_machine in the ELF header
	other[machine] = aarch64
	if runtime.GOARCH == "arm64" {
		other[machine] = x86
	}
	link := filepath.Join(t.TempDir(), file)
	if err := os.Symlink("/nowhere/at/all", link); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), file)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	truth := filepath.Join(t.TempDir(), file)
	if err := os.Symlink("/bin/true", truth); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name     string
		path     string
		checksum string
		mode     string
		stage    Stage
		want     string
	}{
		{name: "missing", path: "/nowhere/" + file, stage: StageCheck, want: "no such file"},
		{name: "link to nothing", path: link, stage: StageCheck, want: "link to /nowhere/at/all"},
		{name: "directory", path: folder, stage: StageCheck, want: "is a directory"},
		{name: "behind a file", path: pluginPath() + "/" + file, stage: StageCheck, want: "not a directory"},
		{name: "mode 0644", path: write(t, file, 0o644, other), stage: StageCheck, want: "not executable, its mode is 0644"},
		{name: "text", path: write(t, file, 0o755, []byte("hello\n")), stage: StageExec, want: "no program"},
		{name: "empty", path: write(t, file, 0o755, nil), stage: StageExec, want: "is empty"},
		{name: "another architecture", path: write(t, file, 0o755, other), stage: StageExec, want: "ELF binary for"},
		{name: "windows", path: write(t, file, 0o755, windowsBinary()), stage: StageExec, want: "Windows binary"},
		{name: "no interpreter", path: write(t, file, 0o755, []byte("#!/nowhere/python -u\n")), stage: StageExec, want: "interpreter /nowhere/python"},
		{name: "not a plugin", path: truth, stage: StageHandshake, want: "exited with status 0 before its handshake"},
		{name: "another protocol version", path: pluginPath(), mode: "version", stage: StageHandshake, want: "version 99"},
		{name: "wrong checksum", path: pluginPath(), checksum: "sha256:" + strings.Repeat("ab", 32), stage: StageCheck, want: "its checksum is sha256:"},
		{name: "no checksum", path: pluginPath(), checksum: "md5:abc", stage: StageCheck, want: `"md5:abc" is no checksum`},
		{name: "another name", path: "/bin/true", stage: StageLocate, want: "not named " + file},
	}
	seen := map[string]string{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := privateRoot(t)
			o := mode(t, tt.mode)
			o.Path, o.Checksum = tt.path, tt.checksum
			began := time.Now()
			_, err := Start(t.Context(), 1, o)
			if took := time.Since(began); took >= o.StartLimit {
				t.Errorf("took %v", took)
			}
			var start *StartError
			if !errors.As(err, &start) {
				t.Fatalf("got %v", err)
			}
			t.Log(err)
			if start.Stage != tt.stage || !strings.Contains(start.Reason, tt.want) || start.Path != tt.path || start.Fix == "" {
				t.Errorf("got %+v", start)
			}
			if was, ok := seen[start.Reason]; ok {
				t.Errorf("the same reason as %s", was)
			}
			seen[start.Reason] = tt.name
			if left := leftIn(t, root); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// windowsBinary is the beginning of one.
func windowsBinary() []byte {
	b := make([]byte, 1024)
	copy(b, "MZ")
	b[0x3c] = 0x80
	copy(b[0x80:], "PE\x00\x00\x64\x86")
	return b
}

// TG-14: what was verified is what runs, for scripts too.
func TestChecksum(t *testing.T) {
	const file = handshake.FilePrefix + "test"
	script := []byte("#!/bin/sh\nexec " + pluginPath() + "\n")
	tests := []struct {
		name    string
		path    string
		content []byte
	}{
		{"binary", pluginPath(), binary(t)},
		{"script", write(t, file, 0o755, script), script},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sum := sha256.Sum256(tt.content)
			o := mode(t, "")
			o.Path, o.Checksum = tt.path, "sha256:"+hex.EncodeToString(sum[:])
			p := start(t, o)
			configure(t, p)
		})
	}

	t.Run("replaced in between", func(t *testing.T) {
		path := write(t, file, 0o755, binary(t))
		sum := sha256.Sum256(binary(t))
		program, bad := openProgram(path, "sha256:"+hex.EncodeToString(sum[:]))
		if bad != nil {
			t.Fatal(bad)
		}
		defer program.close()
		evil := write(t, file, 0o755, []byte("#!/bin/sh\necho replaced\n"))
		if err := os.Rename(evil, path); err != nil {
			t.Fatal(err)
		}
		c, pipes, err := spawn(program, nil, nil)
		if runtime.GOOS == "darwin" {
			if err == nil {
				t.Fatal("the replaced file was executed")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer pipes.close()
		var said string
		eachLine(pipes.stderr, func(line []byte) { said += string(line) })
		<-c.done
		if !strings.Contains(said, "is a transport plugin") {
			t.Errorf("it said %q", said)
		}
	})
}

// The order of section 7.1: a plugin is taken from the first folder that has a
// usable one.
func TestLocateOrder(t *testing.T) {
	const name = "locate-order"
	const file = handshake.FilePrefix + name
	dirs := map[string]string{}
	for _, origin := range []string{"plugin-dir", "data", "path1", "path2"} {
		dirs[origin] = t.TempDir()
	}
	t.Setenv(handshake.EnvPluginDir, dirs["plugin-dir"])
	t.Setenv("XDG_DATA_HOME", dirs["data"])
	t.Setenv("PATH", strings.Join([]string{".", "", dirs["path1"], "relative", dirs["path2"]}, ":"))
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	places := []string{
		filepath.Join(dirs["plugin-dir"], file),
		filepath.Join(filepath.Dir(executable), file),
		filepath.Join(dirs["data"], "longshore", "plugins", file),
		filepath.Join(dirs["path1"], file),
		filepath.Join(dirs["path2"], file),
	}

	_, err = Locate(name, "")
	var failed *LocateError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want a LocateError", err)
	}
	t.Log(err)
	var looked []string
	for _, p := range failed.Places {
		looked = append(looked, p.Path)
	}
	if diff := cmp.Diff(places, looked); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	for _, place := range looked[:3] {
		if !strings.Contains(err.Error(), filepath.Dir(place)) {
			t.Errorf("%s is not named in %v", place, err)
		}
	}
	if got := err.Error(); !strings.Contains(got, "; PATH (2 folders): there is no such file") || strings.Contains(got, dirs["path1"]) {
		t.Errorf("PATH is not named once in %v", err)
	}

	// From the last place to the first, each hides the one before.
	for i := len(places) - 1; i >= 0; i-- {
		if err := os.MkdirAll(filepath.Dir(places[i]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(places[i], []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(places[i]) })
		if got, err := Locate(name, ""); err != nil || got != places[i] {
			t.Errorf("got %s, %v, want %s", got, err, places[i])
		}
	}
	var listed, hidden []string
	for _, p := range List() {
		if p.Name == name {
			listed = append(listed, p.Path)
			if p.Hidden {
				hidden = append(hidden, p.Path)
			}
		}
	}
	if diff := cmp.Diff(places, listed); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(places[1:], hidden); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}

	if err := os.Chmod(places[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Locate(name, ""); err != nil || got != places[1] {
		t.Errorf("with an unusable first: got %s, %v", got, err)
	}
}

func TestNamesOfTransports(t *testing.T) {
	for _, name := range []string{"", "../evil", "a/b", "A", "a b", "-x", ".", strings.Repeat("a", 65), "a\x00b"} {
		var start *StartError
		if _, err := Locate(name, pluginPath()); !errors.As(err, &start) || start.Stage != StageLocate {
			t.Errorf("%q: got %v", name, err)
		}
	}
	for _, name := range []string{"mqtt", "my-transport_2", "9p"} {
		path := "/x/" + handshake.FilePrefix + name
		if got, err := Locate(name, path); err != nil || got != path {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}

func FuzzParseIntroduction(f *testing.F) {
	for _, s := range []string{"1|1|unix|/tmp/x|grpc", "1|1|unix|/tmp/x|grpc|cert|true", "1|1|tcp|:1", "a|b|c|d", "|||", "1|1||x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		in, ok := parseIntroduction(line)
		if !ok {
			return
		}
		if strings.Count(string(line), "|") < 3 || in.network == "" {
			t.Errorf("%q is taken for an introduction", line)
		}
		if in.check() == nil && fmt.Sprintf("%d %d %s %s", in.core, in.version, in.network, in.protocol) != "1 1 unix grpc" {
			t.Errorf("%q passes", line)
		}
	})
}

// A folder on PATH is named where there is something to be said about it.
func TestLocateErrorNamesWhatMatters(t *testing.T) {
	const none = "there is no such file"
	for want, places := range map[string][]Place{
		"PATH (1 folder): " + none: {{Origin: "PATH", Path: "/a/p", Reason: none}},
		"PATH: names no folder":    {{Origin: "PATH", Reason: "names no folder"}},
		"data (/d): " + none + "; PATH (3 folders): " + none: {
			{Origin: "data", Path: "/d/p", Reason: none}, {Origin: "PATH", Path: "/a/p", Reason: none},
			{Origin: "PATH", Path: "/b/p", Reason: none}, {Origin: "PATH", Path: "/c/p", Reason: none},
		},
		"PATH (2 folders): " + none + "; PATH (/b): it is not executable": {
			{Origin: "PATH", Path: "/a/p", Reason: none}, {Origin: "PATH", Path: "/b/p", Reason: "it is not executable"},
			{Origin: "PATH", Path: "/c/p", Reason: none},
		},
	} {
		if d := cmp.Diff(want, (&LocateError{Places: places}).looked()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// The fix ends with how to get the file.
func TestLocateErrorSaysHowToGetIt(t *testing.T) {
	for name, want := range map[string]string{
		"pulsar": "to get it: go install github.com/longshore-go/longshore/plugins/pulsar/longshore-transport-pulsar@latest",
		"pipe":   "to get it: go install github.com/longshore-go/longshore/plugins/pipe/longshore-transport-pipe@latest",
		"mqtt":   "to get it: go install github.com/longshore-go/longshore/plugins/mqtt/longshore-transport-mqtt@latest",
		"zmq":    "to get it: go install github.com/longshore-go/longshore/plugins/zmq/longshore-transport-zmq@latest",
		"kafka":  "to get it: go install <its module>/longshore-transport-kafka@latest",
	} {
		if got := (&LocateError{Name: name}).Fix(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	got := (&LocateError{Name: "zeromq", Installed: []string{"pipe", "zmq"}}).Fix()
	if !strings.HasPrefix(got, "use one that is installed (pipe, zmq), or put the file longshore-transport-zeromq ") {
		t.Errorf("got %q", got)
	}
}
