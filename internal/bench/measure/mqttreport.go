// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"time"
)

// MQTTReport is what was measured of MQTT.
type MQTTReport struct {
	Rounds int             `json:"rounds"` // of which medians are taken
	Rows   []MQTTRowReport `json:"rows"`
	Slow   []Slow          `json:"slow,omitempty"`
}

// MQTTRowReport is one row over all ways.
type MQTTRowReport struct {
	Row     MQTTRow                 `json:"row"`
	Samples map[string][]MQTTSample `json:"samples"`
	Median  map[string]MQTTSample   `json:"median"`
	// Ratio compares rates with those of the same round.
	Ratio map[string]float64 `json:"ratio"`
}

func newMQTTReport(rows []MQTTRow) *MQTTReport {
	r := &MQTTReport{}
	for _, row := range rows {
		r.Rows = append(r.Rows, MQTTRowReport{Row: row, Samples: map[string][]MQTTSample{}})
	}
	return r
}

// finish computes medians and ratios; r may be nil.
func (r *MQTTReport) finish() {
	if r == nil {
		return
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Median, row.Ratio = map[string]MQTTSample{}, map[string]float64{}
		for way, samples := range row.Samples {
			r.Rounds = len(samples)
			row.Median[way] = mqttMedian(samples)
			for _, to := range []string{Autopaho, Buffered, Packets} {
				if way != to && len(row.Samples[to]) > 0 {
					row.Ratio[way+"/"+to] = ratio(mqttPlain(samples), mqttPlain(row.Samples[to]), func(s Sample) float64 { return s.Rate })
				}
			}
		}
	}
}

// mqttPlain are the samples without what only MQTT has.
func mqttPlain(samples []MQTTSample) []Sample {
	of := make([]Sample, len(samples))
	for i, s := range samples {
		of[i] = s.Sample
	}
	return of
}

// mqttMedian returns the median of each figure.
func mqttMedian(samples []MQTTSample) MQTTSample {
	of := func(figure func(MQTTSample) float64) float64 { return median(samples, figure) }
	return MQTTSample{
		Sample:    medians(mqttPlain(samples)),
		Lost:      of(func(s MQTTSample) float64 { return s.Lost }),
		PeerCPU:   of(func(s MQTTSample) float64 { return s.PeerCPU }),
		ServerCPU: of(func(s MQTTSample) float64 { return s.ServerCPU }),
		Trips: Percentiles{
			P50: time.Duration(of(func(s MQTTSample) float64 { return float64(s.Trips.P50) })),
			P99: time.Duration(of(func(s MQTTSample) float64 { return float64(s.Trips.P99) })),
		},
	}
}

// write writes the lines of the tables; r may be nil.
func (r *MQTTReport) write(t *strings.Builder) {
	if r == nil {
		return
	}
	fmt.Fprintf(t, "\nMQTT over Mosquitto, medians of %d rounds\n", r.Rounds)
	r.writeRates(t)
	r.writeTimes(t)
	r.writeSlow(t)
}

func (r *MQTTReport) writeRates(t *strings.Builder) {
	head := "\nfrom or to the server\tway\tmessages/s\tx autopaho\tx buffered\tx packets\tµs CPU\tplugin\tserver\tallocs\tlost\n"
	for _, row := range r.Rows {
		if row.Row.Kind == Arriving {
			continue
		}
		t.WriteString(head)
		head = ""
		for _, way := range row.Row.ways() {
			m, ok := row.Median[way]
			if !ok {
				continue
			}
			fmt.Fprintf(t, "%v\t%s\t%.0f\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\n", row.Row, way, m.Rate,
				times(row.Ratio[way+"/"+Autopaho]), times(row.Ratio[way+"/"+Buffered]), times(row.Ratio[way+"/"+Packets]),
				m.HostCPU, m.PluginCPU, m.ServerCPU, m.HostAllocs, m.Lost)
		}
	}
}

func (r *MQTTReport) writeTimes(t *strings.Builder) {
	head := fmt.Sprintf("\none message each %v\tway\tp50\tabove autopaho\tp99\tabove autopaho\n", pause)
	for _, row := range r.Rows {
		if row.Row.Kind != Arriving {
			continue
		}
		t.WriteString(head)
		head = ""
		base := row.Median[Autopaho].Trips
		for _, way := range row.Row.ways() {
			if m, ok := row.Median[way]; ok {
				fmt.Fprintf(t, "%v\t%s\t%v\t%v\t%v\t%v\n", row.Row, way, round(m.Trips.P50), round(m.Trips.P50-base.P50),
					round(m.Trips.P99), round(m.Trips.P99-base.P99))
			}
		}
	}
}

func (r *MQTTReport) writeSlow(t *strings.Builder) {
	head := "\na slow handler\tfor a message\tpublished\tplugin\thost\n"
	for _, s := range r.Slow {
		t.WriteString(head)
		head = ""
		takes := "for ever"
		if s.Takes > 0 {
			takes = s.Takes.String()
		}
		for _, m := range s.Marks {
			fmt.Fprintf(t, "QoS %d (%d B)\t%s\t%d\t%.0f MiB\t%.0f MiB\n", s.QoS, s.Payload, takes, m.Published, mib(m.Plugin), mib(m.Host))
		}
	}
}
