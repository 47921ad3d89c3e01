// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"time"
)

// ZeroMQReport is what was measured of ZeroMQ.
type ZeroMQReport struct {
	Rounds  int               `json:"rounds"` // of which medians are taken
	Rows    []ZeroMQRowReport `json:"rows"`
	Stalled *Stalled          `json:"stalled,omitempty"`
}

// ZeroMQRowReport is one row over all ways.
type ZeroMQRowReport struct {
	Row     ZeroMQRow                 `json:"row"`
	Samples map[string][]ZeroMQSample `json:"samples"`
	Median  map[string]ZeroMQSample   `json:"median"`
	// Ratio compares rates with those of the same round.
	Ratio map[string]float64 `json:"ratio"`
}

func newZeroMQReport(rows []ZeroMQRow) *ZeroMQReport {
	r := &ZeroMQReport{}
	for _, row := range rows {
		r.Rows = append(r.Rows, ZeroMQRowReport{Row: row, Samples: map[string][]ZeroMQSample{}})
	}
	return r
}

// finish computes medians and ratios; r may be nil.
func (r *ZeroMQReport) finish() {
	if r == nil {
		return
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		for _, samples := range row.Samples {
			r.Rounds = len(samples)
		}
		row.Median, row.Ratio = map[string]ZeroMQSample{}, map[string]float64{}
		for way, samples := range row.Samples {
			row.Median[way] = zeroMQMedian(samples)
			for _, to := range []string{ZMQ4, LibZMQ} {
				if way != to && len(row.Samples[to]) > 0 {
					row.Ratio[way+"/"+to] = ratio(plain(samples), plain(row.Samples[to]), func(s Sample) float64 { return s.Rate })
				}
			}
		}
	}
}

// plain are the samples without what only ZeroMQ has.
func plain(samples []ZeroMQSample) []Sample {
	of := make([]Sample, len(samples))
	for i, s := range samples {
		of[i] = s.Sample
	}
	return of
}

// zeroMQMedian returns the median of each figure.
func zeroMQMedian(samples []ZeroMQSample) ZeroMQSample {
	of := func(figure func(ZeroMQSample) float64) float64 { return median(samples, figure) }
	return ZeroMQSample{
		Sample:  medians(plain(samples)),
		Sent:    of(func(s ZeroMQSample) float64 { return s.Sent }),
		PeerCPU: of(func(s ZeroMQSample) float64 { return s.PeerCPU }),
		Trips: Percentiles{
			P50: time.Duration(of(func(s ZeroMQSample) float64 { return float64(s.Trips.P50) })),
			P99: time.Duration(of(func(s ZeroMQSample) float64 { return float64(s.Trips.P99) })),
		},
	}
}

// write writes the lines of the tables; r may be nil.
func (r *ZeroMQReport) write(t *strings.Builder) {
	if r == nil {
		return
	}
	fmt.Fprintf(t, "\nZeroMQ, medians of %d rounds\n", r.Rounds)
	r.writeRows(t, "to or from one peer\tway\tmessages/s\tx zmq4\tx libzmq\tµs CPU\tplugin\tpeer\tallocs", func(k string) bool { return k == Pull || k == Push },
		func(m ZeroMQSample) string { return fmt.Sprintf("%.2f", m.HostAllocs) })
	r.writeRows(t, "to subscribers\tway\tarrived/s\tx zmq4\tx libzmq\tµs CPU\tplugin\tpeer\tpublished/s", func(k string) bool { return k == FanOut },
		func(m ZeroMQSample) string { return fmt.Sprintf("%.0f", m.Sent) })
	r.writeRows(t, "one request at a time\tway\tanswers/s\tx zmq4\tx libzmq\tµs CPU\tplugin\tpeer\tp50\tp99", func(k string) bool { return k == Ask },
		func(m ZeroMQSample) string { return fmt.Sprintf("%v\t%v", round(m.Trips.P50), round(m.Trips.P99)) })
	if s := r.Stalled; s != nil {
		fmt.Fprintf(t, "\na subscriber that reads nothing (%d B)\tplugin at most\tboth read\tpublished\tarrived at the other\n", s.Payload)
		fmt.Fprintf(t, "beside one that reads\t%.0f MiB\t%.0f MiB\t%d\t%d\n", mib(s.Peak), mib(s.Without), s.Published, s.Arrived)
	}
}

// writeRows writes the rows of some kinds; last gives what stands behind.
func (r *ZeroMQReport) writeRows(t *strings.Builder, head string, of func(kind string) bool, last func(ZeroMQSample) string) {
	for _, row := range r.Rows {
		if !of(row.Row.Kind) {
			continue
		}
		if head != "" {
			fmt.Fprintf(t, "\n%s\n", head)
			head = ""
		}
		for _, way := range row.Row.ways() {
			m, ok := row.Median[way]
			if !ok {
				continue
			}
			fmt.Fprintf(t, "%v\t%s\t%.0f\t%s\t%s\t%.2f\t%.2f\t%.2f\t%s\n", row.Row, way, m.Rate,
				times(row.Ratio[way+"/"+ZMQ4]), times(row.Ratio[way+"/"+LibZMQ]), m.HostCPU, m.PluginCPU, m.PeerCPU, last(m))
		}
	}
}
