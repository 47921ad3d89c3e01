// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"time"
)

// PulsarReport is what was measured of Pulsar.
type PulsarReport struct {
	Rounds int               `json:"rounds"` // of which medians are taken
	Rows   []PulsarRowReport `json:"rows"`
	Holds  []PulsarHold      `json:"holds,omitempty"`
}

// PulsarRowReport is one row over all ways.
type PulsarRowReport struct {
	Row     PulsarRow                 `json:"row"`
	Samples map[string][]PulsarSample `json:"samples"`
	Median  map[string]PulsarSample   `json:"median"`
	// Ratio compares rates with those of the same round.
	Ratio map[string]float64 `json:"ratio"`
}

func newPulsarReport(rows []PulsarRow) *PulsarReport {
	r := &PulsarReport{}
	for _, row := range rows {
		r.Rows = append(r.Rows, PulsarRowReport{Row: row, Samples: map[string][]PulsarSample{}})
	}
	return r
}

// finish computes medians and ratios; r may be nil.
func (r *PulsarReport) finish() {
	if r == nil {
		return
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Median, row.Ratio = map[string]PulsarSample{}, map[string]float64{}
		for way, samples := range row.Samples {
			r.Rounds = len(samples)
			row.Median[way] = pulsarMedian(samples)
			for _, to := range []string{PulsarClient, PulsarDefaults} {
				if way != to && len(row.Samples[to]) > 0 {
					row.Ratio[way+"/"+to] = ratio(pulsarPlain(samples), pulsarPlain(row.Samples[to]), func(s Sample) float64 { return s.Rate })
				}
			}
		}
	}
}

// pulsarPlain are the samples without what only Pulsar has.
func pulsarPlain(samples []PulsarSample) []Sample {
	of := make([]Sample, len(samples))
	for i, s := range samples {
		of[i] = s.Sample
	}
	return of
}

// pulsarMedian returns the median of each figure.
func pulsarMedian(samples []PulsarSample) PulsarSample {
	of := func(figure func(PulsarSample) float64) float64 { return median(samples, figure) }
	return PulsarSample{
		Sample:    medians(pulsarPlain(samples)),
		BrokerCPU: of(func(s PulsarSample) float64 { return s.BrokerCPU }),
		Trips: Percentiles{
			P50: time.Duration(of(func(s PulsarSample) float64 { return float64(s.Trips.P50) })),
			P99: time.Duration(of(func(s PulsarSample) float64 { return float64(s.Trips.P99) })),
		},
	}
}

// write writes the lines of the tables; r may be nil.
func (r *PulsarReport) write(t *strings.Builder) {
	if r == nil {
		return
	}
	fmt.Fprintf(t, "\nPulsar over a standalone broker, medians of %d rounds\n", r.Rounds)
	r.writeRates(t)
	r.writeTimes(t)
	r.writeHolds(t)
}

func (r *PulsarReport) writeRates(t *strings.Builder) {
	head := "\nfrom or to the broker\tway\tmessages/s\tx client\tx its defaults\tµs CPU\tplugin\tbroker\tallocs\n"
	for _, row := range r.Rows {
		if row.Row.timed() {
			continue
		}
		t.WriteString(head)
		head = ""
		for _, way := range row.Row.ways() {
			if m, ok := row.Median[way]; ok {
				fmt.Fprintf(t, "%v\t%s\t%.0f\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\n", row.Row, way, m.Rate,
					times(row.Ratio[way+"/"+PulsarClient]), times(row.Ratio[way+"/"+PulsarDefaults]),
					m.HostCPU, m.PluginCPU, m.BrokerCPU, m.HostAllocs)
			}
		}
	}
}

func (r *PulsarReport) writeTimes(t *strings.Builder) {
	head := fmt.Sprintf("\none message to Pulsar each %v\tway\tp50\tabove client\tp99\tabove client\n", pause)
	for _, row := range r.Rows {
		if !row.Row.timed() {
			continue
		}
		t.WriteString(head)
		head = ""
		base := row.Median[PulsarClient].Trips
		for _, way := range row.Row.ways() {
			if m, ok := row.Median[way]; ok {
				fmt.Fprintf(t, "%v\t%s\t%v\t%v\t%v\t%v\n", row.Row, way, round(m.Trips.P50), round(m.Trips.P50-base.P50),
					round(m.Trips.P99), round(m.Trips.P99-base.P99))
			}
		}
	}
}

func (r *PulsarReport) writeHolds(t *strings.Builder) {
	head := "\na backlog at Pulsar\theld\thandled\tplugin\thost\n"
	for _, s := range r.Holds {
		t.WriteString(head)
		head = ""
		held := "the handler does not return"
		if s.Held > 0 {
			held = fmt.Sprintf("%d for long", s.Held)
		}
		for _, m := range s.Marks {
			fmt.Fprintf(t, "%d (%d B)\t%s\t%d\t%.0f MiB\t%.0f MiB\n", s.Backlog, s.Payload, held, m.Handled, mib(m.Plugin), mib(m.Host))
		}
	}
}
