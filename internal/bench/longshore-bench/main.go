// SPDX-License-Identifier: Apache-2.0

// Command longshore-bench measures the hop between a plugin process and its
// host against generated code, the bare link and the same transport in process;
// stream files read and written; ZeroMQ, MQTT and Pulsar against other libraries; what handlers of
// each kind cost in a host; and what waiting copies and idle subscriptions hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/bench/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("longshore-bench", flag.ContinueOnError)
	var (
		plan     measure.Plan
		full     = f.Bool("full", false, "every combination of rows")
		first    = f.Bool("base", false, "the base row alone")
		subjects = f.String("subjects", "generated,hop,link,inproc,service,socket", "what to measure the hop with, in this order within a round")
		toJSON   = f.String("json", "", "write every sample to this file")
		profile  = f.String("cpuprofile", "", "write a CPU profile of the host to this file")
	)
	f.StringVar(&plan.Plugin, "plugin", beside("longshore-transport-bench"), "the plugin's file")
	f.IntVar(&plan.Rounds, "rounds", 5, "interleaved rounds")
	f.DurationVar(&plan.Time, "time", 500*time.Millisecond, "time of one measurement")
	handlings := f.Bool("handlings", true, "compare ways to handle deliveries")
	f.IntVar(&plan.Copies, "copies", 1_000_000, "copies that wait in memory at a time, 0 for none")
	f.IntVar(&plan.Idle, "idle", 10_000, "idle subscriptions, 0 for none")
	f.StringVar(&plan.Files.Plugin, "files", beside("longshore-transport-file"), "the file of the plugin of stream files, \"\" = they are not measured")
	f.StringVar(&plan.Files.Folder, "folder", "", "where stream files are written, \"\" = the folder of temporary files")
	f.IntVar(&plan.Files.Bytes, "replay", 128<<20, "bytes of payload in a stream file that is replayed")
	f.DurationVar(&plan.Files.Time, "write", 100*time.Millisecond, "time of one measurement of writing stream files")
	f.StringVar(&plan.ZeroMQ.Plugin, "zmq", beside("longshore-transport-zmq"), "the file of the plugin of ZeroMQ, \"\" = it is not measured")
	f.StringVar(&plan.ZeroMQ.Peer, "zmqpeer", beside("longshore-bench-zmq"), "the file of its peers")
	f.IntVar(&plan.ZeroMQ.Rounds, "zmqrounds", 3, "rounds in which ZeroMQ is measured, at most")
	f.DurationVar(&plan.ZeroMQ.Time, "zmqtime", 150*time.Millisecond, "time of one measurement of ZeroMQ")
	f.DurationVar(&plan.ZeroMQ.Stalls, "zmqstalls", 2*time.Second, "for how long a subscriber of ZeroMQ reads nothing")
	zmqRows := f.String("zmqrows", "", "a regular expression of the rows of ZeroMQ that are measured, \"\" = all of them")
	f.StringVar(&plan.MQTT.Plugin, "mqtt", beside("longshore-transport-mqtt"), "the file of the plugin of MQTT, \"\" = it is not measured")
	f.StringVar(&plan.MQTT.Peer, "mqttpeer", beside("longshore-bench-mqtt"), "the file of its peers")
	f.IntVar(&plan.MQTT.Rounds, "mqttrounds", 3, "rounds in which MQTT is measured, at most")
	f.IntVar(&plan.MQTT.Messages, "mqttmessages", 40_000, "messages of one measurement of MQTT at QoS 0; a third at QoS 1, a fifth at QoS 2")
	f.IntVar(&plan.MQTT.Waiting, "mqttwaiting", 100_000, "messages of MQTT that are published to a slow handler at a time, 0 = it is not measured")
	f.DurationVar(&plan.MQTT.Lost, "mqttlost", time.Second, "after so long without an arrival what is missing of MQTT is lost")
	mqttRows := f.String("mqttrows", "", "a regular expression of the rows of MQTT that are measured, \"\" = all of them")
	f.StringVar(&plan.Pulsar.Plugin, "pulsar", beside("longshore-transport-pulsar"), "the file of the plugin of Pulsar, \"\" = it is not measured")
	f.StringVar(&plan.Pulsar.Peer, "pulsarpeer", beside("longshore-bench-pulsar"), "the file of its peers")
	f.IntVar(&plan.Pulsar.Rounds, "pulsarrounds", 3, "rounds in which Pulsar is measured, at most")
	f.IntVar(&plan.Pulsar.Messages, "pulsarmessages", 20_000, "messages of one measurement of Pulsar, twice as many in batches")
	f.IntVar(&plan.Pulsar.Backlog, "pulsarbacklog", 200_000, "messages of a backlog at Pulsar before slow handlers, 0 = it is not measured")
	f.IntVar(&plan.Pulsar.Large, "pulsarlarge", 400, "likewise, of messages of 1 MiB")
	pulsarRows := f.String("pulsarrows", "", "a regular expression of the rows of Pulsar that are measured, \"\" = all of them")
	parts := f.String("parts", "hop,handlings,files,zmq,mqtt,pulsar,memory", "what is measured")
	f.DurationVar(&plan.Latency, "latency", time.Second, "time of one latency measurement, 0s for none")
	if err := f.Parse(args); err != nil {
		return err
	}
	rows, err := measure.ZeroMQRows(*zmqRows)
	if err != nil {
		return err
	}
	plan.ZeroMQ.Rows = rows
	if plan.MQTT.Rows, err = measure.MQTTRows(*mqttRows); err != nil {
		return err
	}
	if plan.Pulsar.Rows, err = measure.PulsarRows(*pulsarRows); err != nil {
		return err
	}
	plan.MQTT.Latency, plan.Pulsar.Latency = plan.Latency/2, plan.Latency
	plan.Rows, plan.Subjects = measure.Rows(*full), split(*subjects)
	plan.Progress = func(round int) { fmt.Fprintf(os.Stderr, "round %d of %d\n", round, plan.Rounds) }
	if *handlings {
		plan.Handlings = measure.Handlings()
	}
	if *first {
		plan.Rows = plan.Rows[:1]
	}
	if err := choose(&plan, split(*parts)); err != nil {
		return err
	}
	report, err := profiled(*profile, func() (*measure.Report, error) { return measure.Suite(ctx, plan) })
	if err != nil {
		return err
	}
	if *toJSON != "" {
		if err := writeFile(*toJSON, report.WriteJSON); err != nil {
			return err
		}
	}
	return report.WriteText(out)
}

// choose takes out of the plan what is not among the parts.
func choose(plan *measure.Plan, parts []string) error {
	leaveOut := map[string]func(){
		"hop":       func() { plan.Rows, plan.Subjects = nil, nil },
		"handlings": func() { plan.Handlings = nil },
		"files":     func() { plan.Files.Plugin = "" },
		"zmq":       func() { plan.ZeroMQ.Plugin = "" },
		"mqtt":      func() { plan.MQTT.Plugin = "" },
		"pulsar":    func() { plan.Pulsar.Plugin = "" },
		"memory":    func() { plan.Copies, plan.Idle = 0, 0 },
	}
	for _, name := range parts {
		if _, ok := leaveOut[name]; !ok {
			return fmt.Errorf("no part %q: use hop, handlings, files, zmq, mqtt, pulsar or memory", name)
		}
		delete(leaveOut, name)
	}
	for _, leave := range leaveOut {
		leave()
	}
	return nil
}

// split cuts a list at its commas; "" holds nothing.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// profiled runs f with a CPU profile into a file, "" = none.
func profiled(path string, f func() (*measure.Report, error)) (report *measure.Report, err error) {
	if path == "" {
		return f()
	}
	err = writeFile(path, func(w io.Writer) error {
		if err := pprof.StartCPUProfile(w); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		var err error
		report, err = f()
		return err
	})
	return report, err
}

// writeFile lets write fill a new file.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// beside returns the path of a file in the executable's folder.
func beside(name string) string {
	exe, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(exe), name)
}
