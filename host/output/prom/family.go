package prom

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"rdmarun/host/record"
)

// family is a metric with its series, by the values of their labels.  The library's own objects take ten times as
// much memory, so they are made when they are written, some at a time: a run may have a hundred thousand cases.
type family struct {
	*metric
	values    map[string]float64
	summaries map[string]record.Distribution
	// tags are those that any of the series has; the labels of the others are empty, which to Prometheus is none.
	tags map[string]bool
}

// chunk is how many series are made at once.
const chunk = 1000

// separator stands between the values of labels, and between them and names and values of tags; no UTF-8 text has it.
const separator = "\xff"

func join(labels []string) string {
	valid := make([]string, len(labels))
	for i, label := range labels {
		valid[i] = strings.ToValidUTF8(label, "\ufffd") // a file's name may be in any encoding
	}
	return strings.Join(valid, separator)
}

// tagged is the key of a series with tags.
func (f *family) tagged(labels []string, tags map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		f.tags[name] = true
		value := tags[name]
		if value == "" {
			value = "true" // a word
		}
		labels = append(labels, name, value)
	}
	return join(labels)
}

// labelsOf are the values of a series' labels, in the order of those of the family.
func (f *family) labelsOf(key string) []string {
	if key == "" {
		return nil
	}
	parts := strings.Split(key, separator)
	values, rest := slices.Clone(parts[:len(f.labels)]), parts[len(f.labels):]
	tags := make(map[string]string, len(rest)/2)
	for i := 0; i+1 < len(rest); i += 2 {
		tags[rest[i]] = rest[i+1]
	}
	for _, name := range slices.Sorted(maps.Keys(f.tags)) {
		values = append(values, tags[name])
	}
	return values
}

func (f *family) write(out io.Writer) error {
	keys := slices.Concat(slices.Collect(maps.Keys(f.values)), slices.Collect(maps.Keys(f.summaries)))
	slices.Sort(keys)
	for i, part := range slices.Collect(slices.Chunk(keys, chunk)) {
		var text bytes.Buffer
		if err := f.encode(&text, part); err != nil {
			return fmt.Errorf("metrics: %s: %w", f.name, err)
		}
		for i > 0 && bytes.HasPrefix(text.Bytes(), []byte("#")) {
			if _, err := text.ReadBytes('\n'); err != nil { // its type and what it is stand at the top alone
				return fmt.Errorf("metrics: %s: %w", f.name, err)
			}
		}
		if _, err := out.Write(text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) encode(out io.Writer, keys []string) error {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(&part{f, keys, f.description(slices.Sorted(maps.Keys(f.tags)))}); err != nil {
		return err
	}
	gathered, err := registry.Gather()
	if err != nil {
		return err
	}
	encoder := expfmt.NewEncoder(out, expfmt.NewFormat(expfmt.TypeOpenMetrics))
	for _, each := range gathered {
		if err := encoder.Encode(each); err != nil {
			return err
		}
	}
	return nil
}

// part is some of the series of a family.
type part struct {
	*family
	keys []string
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (p *part) Describe(out chan<- *prometheus.Desc) { out <- p.desc }

// Collect implements prometheus.Collector.
func (p *part) Collect(out chan<- prometheus.Metric) {
	for _, key := range p.keys {
		made, err := p.make(key, p.desc)
		if err != nil {
			made = prometheus.NewInvalidMetric(p.desc, err) // Gather returns the error
		}
		out <- made
	}
}

func (f *family) make(key string, desc *prometheus.Desc) (prometheus.Metric, error) {
	labels := f.labelsOf(key)
	if value, is := f.values[key]; is {
		return prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	d := f.summaries[key]
	seconds := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	return prometheus.NewConstSummary(desc, uint64(d.Count), d.Mean*float64(d.Count)/1e9, map[float64]float64{
		0: seconds(d.Min), 0.5: seconds(d.P50), 0.9: seconds(d.P90), 0.99: seconds(d.P99),
		0.999: seconds(d.P999), 0.9999: seconds(d.P9999), 1: seconds(d.Max),
	}, labels...)
}
