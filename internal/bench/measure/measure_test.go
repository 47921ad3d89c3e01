// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/programtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// What slow handlers are given.
const waiting, backlog = 500, 2000

// TestSuite measures everything once, for a moment: it shows that the figures
// are there, not that they are good.
func TestSuite(t *testing.T) {
	bin := t.TempDir()
	plugin, folder := filepath.Join(bin, "longshore-transport-bench"), t.TempDir()
	err := programtest.Folder(bin, "./internal/bench/longshore-transport-bench",
		"./internal/bench/longshore-bench-zmq", "./internal/bench/longshore-bench-mqtt", "./internal/bench/longshore-bench-pulsar",
		"./plugins/file/longshore-transport-file", "./plugins/zmq/longshore-transport-zmq",
		"./plugins/mqtt/longshore-transport-mqtt", "./plugins/pulsar/longshore-transport-pulsar")
	if err != nil {
		t.Fatal(err)
	}
	zeroMQ, err := ZeroMQRows("64 B|ipc +512 B .* from|to 1$|request ipc")
	if err != nil {
		t.Fatal(err)
	}
	// Each kind once, with every way and with headers.
	mqttRows, err := MQTTRows(`consume QoS 2|consume QoS 0 .*\+ 3|publish QoS 1|one way QoS 0`)
	if err != nil {
		t.Fatal(err)
	}
	pulsarRows, err := PulsarRows(`consume batches|publish single|one way`)
	if err != nil {
		t.Fatal(err)
	}
	runs := Base
	runs.Runs, runs.Window = true, 1
	subjects := []string{Generated, Hop, Link, InProc, Service, Socket}
	rep, err := Suite(t.Context(), Plan{
		Plugin: plugin, Rows: []Row{Base, runs}, Subjects: subjects,
		Handlings: Handlings(), Copies: 2000, Idle: 20,
		Files: FilePlan{Plugin: filepath.Join(bin, "longshore-transport-file"), Folder: folder, Bytes: 4 << 20, Time: 20 * time.Millisecond},
		ZeroMQ: ZeroMQPlan{
			Plugin: filepath.Join(bin, "longshore-transport-zmq"), Peer: filepath.Join(bin, "longshore-bench-zmq"),
			Rounds: 1, Time: 20 * time.Millisecond, Stalls: 200 * time.Millisecond, Rows: zeroMQ,
		},
		MQTT: MQTTPlan{
			Plugin: filepath.Join(bin, "longshore-transport-mqtt"), Peer: filepath.Join(bin, "longshore-bench-mqtt"),
			Rounds: 1, Messages: 1000, Latency: 40 * time.Millisecond, Lost: time.Minute, Waiting: waiting, Rows: mqttRows,
		},
		Pulsar: PulsarPlan{
			Plugin: filepath.Join(bin, "longshore-transport-pulsar"), Peer: filepath.Join(bin, "longshore-bench-pulsar"),
			Rounds: 1, Messages: 1000, Latency: 40 * time.Millisecond, Backlog: backlog, Large: 10, Rows: pulsarRows,
		},
		Rounds: 1, Time: 20 * time.Millisecond, Latency: 200 * time.Millisecond, Progress: func(int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rep.Rows {
		for _, name := range subjects[:5] {
			if m := row.Median[name]; m.Rate <= 0 || m.HostCPU <= 0 {
				t.Errorf("%v: %s measured %+v", row.Row, name, m)
			}
		}
	}
	for _, name := range []string{Generated, Hop, Link, InProc, Socket} {
		if rep.latency(name).P50 <= 0 {
			t.Errorf("no latency of %s", name)
		}
	}
	for _, h := range rep.Handlings {
		if h.Median.Rate <= 0 || h.CPU <= 0 || h.Rate <= 0 {
			t.Errorf("handling %s measured %+v", h.Name, h)
		}
	}
	if w := rep.Waiting; w.Count.Copies != 2000 || w.Bytes.Copies == 0 || w.Bytes.Copies >= 2000 {
		t.Errorf("waiting copies measured %+v", w)
	}
	if i := rep.Idle; i.Goroutines < 1 || i.Start <= 0 || i.Stop <= 0 {
		t.Errorf("idle subscriptions measured %+v", i)
	}
	checkFiles(t, rep.Files, folder)
	checkZeroMQ(t, rep.ZeroMQ)
	checkMQTT(t, rep.MQTT)
	checkPulsar(t, rep.Pulsar)
	var text, raw bytes.Buffer
	if err := rep.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"512 B + 3  frame 256 window 1024 each", "generated", "start to serving", "JSON, 5 fields", "2000, the limit", "idle subscriptions", "stream files on", "one at a time", "publish to delivery", "x zmq4", "one request at a time", "beside one that reads", "x autopaho", "one message each 2ms", "a slow handler", "x its defaults", "one message to Pulsar each 2ms", "a backlog at Pulsar"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if err := rep.WriteJSON(&raw); err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(raw.Bytes(), &again); err != nil || len(again.ZeroMQ.Rows) != len(zeroMQ) || len(again.MQTT.Rows) != len(mqttRows) || len(again.Pulsar.Rows) != len(pulsarRows) || len(again.Rows) != 2 || again.Idle == nil || len(again.Files.Rows) == 0 || len(again.Rows[0].Samples) != 5 {
		t.Errorf("JSON reads back as %+v, %v", again, err)
	}
}

func checkFiles(t *testing.T, files *FileReport, folder string) {
	t.Helper()
	for _, row := range files.Rows {
		for _, name := range []string{File, Alone, Hop} {
			if m := row.Median[name]; m.Rate <= 0 {
				t.Errorf("%v: %s measured %+v", row.Row, name, m)
			}
		}
	}
	for _, name := range []string{File, Alone} {
		if ps := files.Latency[name]; len(ps) != 1 || ps[0].P50 <= 0 {
			t.Errorf("latency of %s: %v", name, ps)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func checkZeroMQ(t *testing.T, r *ZeroMQReport) {
	t.Helper()
	kinds := map[string]bool{}
	for _, row := range r.Rows {
		kinds[row.Row.Kind] = true
		for _, way := range row.Row.ways() {
			m := row.Median[way]
			if m.Rate <= 0 || m.HostCPU <= 0 || m.PeerCPU <= 0 {
				t.Errorf("%v: %s measured %+v", row.Row, way, m)
			}
			if asks := row.Row.Kind == Ask; asks != (m.Trips.P50 > 0) {
				t.Errorf("%v: %s has round trips of %v", row.Row, way, m.Trips)
			}
			if process := way == ZMQ || way == ZMQWide; runtime.GOOS == "linux" && process != (m.PluginCPU > 0) {
				t.Errorf("%v: %s used %v in its plugin", row.Row, way, m.PluginCPU)
			}
		}
		if row.Ratio[ZMQ+"/"+ZMQ4] <= 0 {
			t.Errorf("%v: compared as %v", row.Row, row.Ratio)
		}
	}
	if len(kinds) != len([]string{Pull, Push, FanOut, Ask}) {
		t.Errorf("measured %v", kinds)
	}
	if s := r.Stalled; s.Arrived == 0 || s.Published <= s.Arrived/2 {
		t.Errorf("a stalled subscriber measured %+v", s)
	}
}

func checkMQTT(t *testing.T, r *MQTTReport) {
	t.Helper()
	for _, row := range r.Rows {
		for _, way := range row.Row.ways() {
			m := row.Median[way]
			if m.Rate <= 0 || m.HostCPU <= 0 || m.PeerCPU <= 0 || m.Lost != 0 {
				t.Errorf("%v: %s measured %+v", row.Row, way, m)
			}
			if timed := row.Row.Kind == Arriving; timed != (m.Trips.P50 > 0) {
				t.Errorf("%v: %s took %v", row.Row, way, m.Trips)
			}
			if process := way == MQTT || way == MQTTWide; runtime.GOOS == "linux" && (process != (m.PluginCPU > 0) || m.ServerCPU <= 0) {
				t.Errorf("%v: %s used %v in its plugin, %v in the server", row.Row, way, m.PluginCPU, m.ServerCPU)
			}
		}
		if row.Ratio[MQTT+"/"+Autopaho] <= 0 {
			t.Errorf("%v: compared as %v", row.Row, row.Ratio)
		}
	}
	for _, s := range r.Slow {
		if len(s.Marks) != 4 || s.Marks[3].Published != 3*waiting || runtime.GOOS == "linux" && s.Marks[3].Plugin == 0 {
			t.Errorf("a slow handler measured %+v", s)
		}
	}
	if len(r.Slow) != 3 {
		t.Errorf("%d slow handlers", len(r.Slow))
	}
}

func checkPulsar(t *testing.T, r *PulsarReport) {
	t.Helper()
	for _, row := range r.Rows {
		for _, way := range row.Row.ways() {
			m := row.Median[way]
			if m.Rate <= 0 || m.HostCPU <= 0 {
				t.Errorf("%v: %s measured %+v", row.Row, way, m)
			}
			if timed := row.Row.timed(); timed != (m.Trips.P50 > 0) {
				t.Errorf("%v: %s took %v", row.Row, way, m.Trips)
			}
			if runtime.GOOS == "linux" && ((way == Pulsar) != (m.PluginCPU > 0) || m.BrokerCPU <= 0) {
				t.Errorf("%v: %s used %v in its plugin, %v in the broker", row.Row, way, m.PluginCPU, m.BrokerCPU)
			}
		}
		if row.Ratio[Pulsar+"/"+PulsarClient] <= 0 {
			t.Errorf("%v: compared as %v", row.Row, row.Ratio)
		}
	}
	if len(r.Holds) != 3 {
		t.Fatalf("%d slow handlers", len(r.Holds))
	}
	for i, handled := range []int{backlog, 1, 1} { // all of it, or what the handler keeps
		marks := r.Holds[i].Marks
		if len(marks) != 3 || marks[2].Handled < handled || runtime.GOOS == "linux" && marks[2].Plugin == 0 {
			t.Errorf("a slow handler measured %+v", r.Holds[i])
		}
	}
}

func TestMQTTRows(t *testing.T)   { expectRows(t, MQTTRows, "^consume QoS 2", 1) }
func TestPulsarRows(t *testing.T) { expectRows(t, PulsarRows, "^consume batches", 1) }
func TestZeroMQRows(t *testing.T) { expectRows(t, ZeroMQRows, "^pub", 3) }

// expectRows checks that no row of a table is there twice, and what an expression
// selects of them.
func expectRows[R fmt.Stringer](t *testing.T, table func(only string) ([]R, error), only string, want int) {
	t.Helper()
	rows, err := table("")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.String()] {
			t.Errorf("%v twice", r)
		}
		seen[r.String()] = true
	}
	if few, err := table(only); err != nil || len(few) != want {
		t.Errorf("got %v, %v", few, err)
	}
	if _, err := table("("); err == nil {
		t.Error("( is a regular expression")
	}
}

func TestRows(t *testing.T) {
	if n := len(Rows(true)); n != 3*3*3*2 {
		t.Errorf("got %d rows for every combination", n)
	}
	seen := map[Row]bool{}
	for _, r := range Rows(false) {
		if seen[r] {
			t.Errorf("%v twice", r)
		}
		seen[r] = true
	}
	if !seen[Base] {
		t.Error("no base row")
	}
}

func TestMedians(t *testing.T) {
	same := func(f float64) float64 { return f }
	for _, test := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(test.in, same); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.in, got, test.want)
		}
	}
	of := []Sample{{Rate: 10}, {Rate: 30}, {Rate: 5}}
	to := []Sample{{Rate: 5}, {Rate: 10}, {Rate: 5}}
	if got := ratio(of, to, func(s Sample) float64 { return s.Rate }); got != 2 {
		t.Errorf("ratio is %v, want 2: rounds are compared one by one", got)
	}
	ages := make([]time.Duration, 200)
	for i := range ages {
		ages[i] = time.Duration(200 - i)
	}
	if p := percentiles(ages); p.P50 != 101 || p.P99 != 199 {
		t.Errorf("got %+v", p)
	}
	if p := percentiles(nil); p != (Percentiles{}) {
		t.Errorf("got %+v of nothing", p)
	}
}
