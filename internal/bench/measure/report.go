// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what was measured.
type Report struct {
	Go      string                   `json:"go"`
	CPUs    int                      `json:"cpus"`
	Rounds  int                      `json:"rounds"`
	Time    time.Duration            `json:"time_ns"` // of one measurement
	Rows    []RowReport              `json:"rows"`
	Latency map[string][]Percentiles `json:"latency,omitempty"`
	Starts  []Start                  `json:"starts,omitempty"`

	Files     *FileReport      `json:"files,omitempty"`
	ZeroMQ    *ZeroMQReport    `json:"zeromq,omitempty"`
	MQTT      *MQTTReport      `json:"mqtt,omitempty"`
	Pulsar    *PulsarReport    `json:"pulsar,omitempty"`
	Handlings []HandlingReport `json:"handlings,omitempty"`
	Waiting   *Waiting         `json:"waiting,omitempty"`
	Idle      *Idle            `json:"idle,omitempty"`
}

// RowReport is one row over all subjects.
type RowReport struct {
	Row     Row                 `json:"row"`
	Samples map[string][]Sample `json:"samples"`
	Median  map[string]Sample   `json:"median"`
	// Ratio compares rates with those of the same round.
	Ratio map[string]float64 `json:"ratio"`
}

// Start is one start of the plugin.
type Start struct {
	Serving  time.Duration `json:"serving_ns"`         // from before exec to the answer of Describe
	Resident int64         `json:"resident,omitempty"` // bytes while idle; 0 = not known here
}

func newReport(p Plan) *Report {
	r := &Report{Go: runtime.Version(), CPUs: runtime.NumCPU(), Rounds: p.Rounds, Time: p.Time, Latency: map[string][]Percentiles{}}
	for _, row := range p.Rows {
		r.Rows = append(r.Rows, RowReport{Row: row, Samples: map[string][]Sample{}})
	}
	for _, name := range p.Handlings {
		r.Handlings = append(r.Handlings, HandlingReport{Name: name})
	}
	return r
}

func (r *RowReport) add(subject string, s Sample) {
	r.Samples[subject] = append(r.Samples[subject], s)
}

// start starts and ends the plugin once.
func (r *Report) start(ctx context.Context, plugin string) error {
	at := time.Now()
	s, p, err := StartHop(ctx, plugin)
	if err != nil {
		return err
	}
	r.Starts = append(r.Starts, Start{Serving: time.Since(at), Resident: statusBytes(p.PID(), "VmRSS:")})
	return s.Close()
}

// finish computes medians and ratios.
func (r *Report) finish() {
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Median, row.Ratio = map[string]Sample{}, map[string]float64{}
		for name, samples := range row.Samples {
			row.Median[name] = medians(samples)
		}
		for _, pair := range [][2]string{{Hop, Generated}, {Link, Generated}, {Hop, InProc}, {Service, Hop}} {
			row.Ratio[pair[0]+"/"+pair[1]] = ratio(row.Samples[pair[0]], row.Samples[pair[1]], func(s Sample) float64 { return s.Rate })
		}
	}
	r.Files.finish()
	r.ZeroMQ.finish()
	r.MQTT.finish()
	r.Pulsar.finish()
	finishHandlings(r.Handlings)
}

// medians returns the median of each figure.
func medians(samples []Sample) Sample {
	return Sample{
		Rate:       median(samples, func(s Sample) float64 { return s.Rate }),
		HostCPU:    median(samples, func(s Sample) float64 { return s.HostCPU }),
		PluginCPU:  median(samples, func(s Sample) float64 { return s.PluginCPU }),
		HostAllocs: median(samples, func(s Sample) float64 { return s.HostAllocs }),
		PlugAllocs: median(samples, func(s Sample) float64 { return s.PlugAllocs }),
	}
}

// ratio is the median of the ratios of a figure within each round.
func ratio(of, to []Sample, figure func(Sample) float64) float64 {
	var rs []float64
	for i := range min(len(of), len(to)) {
		rs = append(rs, figure(of[i])/figure(to[i]))
	}
	return median(rs, func(r float64) float64 { return r })
}

// WriteText writes the tables.
func (r *Report) WriteText(w io.Writer) error {
	t := &strings.Builder{}
	fmt.Fprintf(t, "plugin to host, acked; medians of %d interleaved rounds, %s, %d CPUs\n\n", r.Rounds, r.Go, r.CPUs)
	for i, row := range r.Rows {
		if i == 0 {
			fmt.Fprintln(t, "row\tway\tmessages/s\tx generated\tx inproc\tx hop\tµs CPU host\tplugin\tallocs host\tplugin")
		}
		for _, name := range []string{Hop, Link, Generated, InProc, Service} {
			m, ok := row.Median[name]
			if !ok {
				continue
			}
			fmt.Fprintf(t, "%v\t%s\t%.0f\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\n", row.Row, name, m.Rate,
				times(row.Ratio[name+"/"+Generated]), times(row.Ratio[name+"/"+InProc]), times(row.Ratio[name+"/"+Hop]), m.HostCPU, m.PluginCPU, m.HostAllocs, m.PlugAllocs)
		}
	}
	if len(r.Latency) > 0 {
		fmt.Fprintln(t, "\none way at 1000 messages/s\tp50\tabove socket\tp99\tabove socket")
		base := r.latency(Socket)
		for _, name := range []string{Hop, Link, Generated, InProc, Socket} {
			if l := r.latency(name); l.P50 > 0 {
				fmt.Fprintf(t, "%s\t%v\t%v\t%v\t%v\n", name, round(l.P50), round(l.P50-base.P50), round(l.P99), round(l.P99-base.P99))
			}
		}
	}
	if len(r.Starts) > 0 {
		fmt.Fprintf(t, "\nstart to serving\t%v\n", round(time.Duration(median(r.Starts, func(s Start) float64 { return float64(s.Serving) }))))
		fmt.Fprintf(t, "resident while idle\t%.1f MiB\n", median(r.Starts, func(s Start) float64 { return float64(s.Resident) })/(1<<20))
	}
	r.Files.write(t)
	r.ZeroMQ.write(t)
	r.MQTT.write(t)
	r.Pulsar.write(t)
	writeHandlings(t, r.Handlings)
	r.Waiting.write(t)
	r.Idle.write(t)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, t.String()); err != nil {
		return err
	}
	return table.Flush()
}

// latency returns the medians over the rounds.
func (r *Report) latency(name string) Percentiles {
	return Percentiles{
		P50: time.Duration(median(r.Latency[name], func(p Percentiles) float64 { return float64(p.P50) })),
		P99: time.Duration(median(r.Latency[name], func(p Percentiles) float64 { return float64(p.P99) })),
	}
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Nanosecond) }

func times(r float64) string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", r)
}

// WriteJSON writes all samples.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
