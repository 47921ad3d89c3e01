// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"time"
)

// FileReport is what was measured of stream files.
type FileReport struct {
	FileSystem string          `json:"file_system"` // as the system names it, "" = not known here
	Rows       []FileRowReport `json:"rows"`
	// Latency is from before a message is published to its delivery.
	Latency map[string][]Percentiles `json:"latency,omitempty"`
}

// FileRowReport is one row over all ways.
type FileRowReport struct {
	Row     FileRow             `json:"row"`
	Samples map[string][]Sample `json:"samples"`
	Median  map[string]Sample   `json:"median"`
	// Ratio compares rates with those of the same round.
	Ratio map[string]float64 `json:"ratio"`
}

func newFileReport(fileSystem string) *FileReport {
	r := &FileReport{FileSystem: fileSystem, Latency: map[string][]Percentiles{}}
	for _, row := range FileRows() {
		r.Rows = append(r.Rows, FileRowReport{Row: row, Samples: map[string][]Sample{}})
	}
	return r
}

// finish computes medians and ratios; r may be nil.
func (r *FileReport) finish() {
	if r == nil {
		return
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Median, row.Ratio = map[string]Sample{}, map[string]float64{}
		for name, samples := range row.Samples {
			row.Median[name] = medians(samples)
		}
		for _, to := range []string{Hop, Alone} {
			row.Ratio[File+"/"+to] = ratio(row.Samples[File], row.Samples[to], func(s Sample) float64 { return s.Rate })
		}
	}
}

// write writes the lines of the tables; r may be nil.
func (r *FileReport) write(t *strings.Builder) {
	if r == nil {
		return
	}
	on := r.FileSystem
	if on == "" {
		on = "an unknown file system"
	}
	fmt.Fprintf(t, "\nstream files on %s\tway\tmessages/s\tx hop\tx alone\tµs CPU host\tplugin\tallocs host\n", on)
	for _, row := range r.Rows {
		for _, name := range []string{File, Alone, Hop} {
			m, ok := row.Median[name]
			if !ok {
				continue
			}
			fmt.Fprintf(t, "%v\t%s\t%.0f\t%s\t%s\t%.2f\t%.2f\t%.2f\n", row.Row, name, m.Rate,
				times(row.Ratio[name+"/"+Hop]), times(row.Ratio[name+"/"+Alone]), m.HostCPU, m.PluginCPU, m.HostAllocs)
		}
	}
	if len(r.Latency) == 0 {
		return
	}
	fmt.Fprintln(t, "\npublish to delivery at 1000 messages/s\tp50\tp99")
	for _, name := range []string{File, Alone} {
		p50 := median(r.Latency[name], func(p Percentiles) float64 { return float64(p.P50) })
		p99 := median(r.Latency[name], func(p Percentiles) float64 { return float64(p.P99) })
		fmt.Fprintf(t, "%s\t%v\t%v\n", name, round(time.Duration(p50)), round(time.Duration(p99)))
	}
}
