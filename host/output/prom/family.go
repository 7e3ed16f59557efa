package prom

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/record"
)

// family is a metric with its series, by the values of their labels.
type family struct {
	*metric
	values    map[string]float64
	summaries map[string]record.Distribution
	// tags are those that any of the series has; for a series without one its label is empty, which Prometheus takes
	// for none.
	tags map[string]bool
}

// separator separates the values of labels, and the names and values of tags; no UTF-8 text has it.
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
		value := tags[name]
		if value == "" {
			value = "true" // a word
		}
		name = strings.ToValidUTF8(name, "\ufffd") // as the key has it
		f.tags[name] = true
		labels = append(labels, name, value)
	}
	return join(labels)
}

// labelsOf are the values of a series' labels, in the order of the family's; tags are the family's, sorted.
func (f *family) labelsOf(key string, tags []string) []string {
	if len(f.labels) == 0 {
		return nil
	}
	parts := strings.Split(key, separator)
	values, rest := parts[:len(f.labels):len(f.labels)], parts[len(f.labels):]
	for _, name := range tags {
		value := ""
		for i := 0; i+1 < len(rest); i += 2 {
			if rest[i] == name {
				value = rest[i+1]
			}
		}
		values = append(values, value)
	}
	return values
}

// series is what is known under one set of labels.
type series struct {
	key    string
	values []string // of its labels, in the order of their names
}

// write prints the family as OpenMetrics 1.0 does: labels by their names, series by the values of their labels.
func (f *family) write(to io.Writer) error {
	out := bufio.NewWriter(to)
	f.head(out)
	tags := slices.Sorted(maps.Keys(f.tags))
	names := append(slices.Clone(f.labels), tagLabels(tags)...)
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	sorted := func(list []string) []string {
		if len(list) == 0 {
			return nil
		}
		inOrder := make([]string, len(order))
		for i, from := range order {
			inOrder[i] = list[from]
		}
		return inOrder
	}
	var rows []series
	for key := range f.values {
		rows = append(rows, series{key, sorted(f.labelsOf(key, tags))})
	}
	for key := range f.summaries {
		rows = append(rows, series{key, sorted(f.labelsOf(key, tags))})
	}
	names = sorted(names)
	slices.SortFunc(rows, func(a, b series) int { return compareLabels(names, a.values, b.values) })
	for _, row := range rows {
		if value, is := f.values[row.key]; is {
			sample(out, f.name, pairs(names, row.values), floating(value))
		} else {
			f.summary(out, pairs(names, row.values), f.summaries[row.key])
		}
	}
	return out.Flush() // with the first error of all that was written
}

// compareLabels orders series by the values of their labels: sizes as numbers, all others as texts.
func compareLabels(names, a, b []string) int {
	for i, name := range names {
		order := cmp.Compare(a[i], b[i])
		if name == sizeLabel {
			order = cmp.Or(cmp.Compare(len(a[i]), len(b[i])), order) // digits without leading zeros
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// head writes the type of the family.  Prometheus' older text has the same types.
func (f *family) head(out *bufio.Writer) {
	kind := " gauge\n"
	if len(f.summaries) > 0 {
		kind = " summary\n"
	}
	for _, text := range []string{"# HELP ", f.name, " ", escaped(f.help), "\n# TYPE ", f.name, kind} {
		out.WriteString(text)
	}
}

func (f *family) summary(out *bufio.Writer, labels string, d record.Distribution) {
	for _, quantile := range []struct {
		of float64
		ns int64
	}{{0, d.Min}, {0.5, d.P50}, {0.9, d.P90}, {0.99, d.P99}, {0.999, d.P999}, {0.9999, d.P9999}, {1, d.Max}} {
		pair := `quantile="` + floating(quantile.of) + `"`
		if labels != "" {
			pair = labels + "," + pair
		}
		sample(out, f.name, pair, floating(time.Duration(quantile.ns).Seconds()))
	}
	sample(out, f.name+"_sum", labels, floating(d.Mean*float64(d.Count)/1e9))
	sample(out, f.name+"_count", labels, strconv.FormatInt(d.Count, 10))
}

func sample(out *bufio.Writer, name, labels, value string) {
	out.WriteString(name)
	if labels != "" {
		for _, text := range []string{"{", labels, "}"} {
			out.WriteString(text)
		}
	}
	for _, text := range []string{" ", value, "\n"} {
		out.WriteString(text)
	}
}

// pairs are labels with their values, as between braces.
func pairs(names, values []string) string {
	var text strings.Builder
	for i, name := range names {
		if i > 0 {
			text.WriteByte(',')
		}
		for _, each := range []string{name, `="`, escaped(values[i]), `"`} {
			text.WriteString(each)
		}
	}
	return text.String()
}

// escaper is that of OpenMetrics 1.0, "escaped-string".
var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func escaped(text string) string { return escaper.Replace(text) }

// floating prints a number of type realnumber: with a point or an exponent, so that no reader takes it for an integer.
func floating(value float64) string {
	switch {
	case math.IsNaN(value):
		return "NaN"
	case math.IsInf(value, 1):
		return "+Inf"
	case math.IsInf(value, -1):
		return "-Inf"
	case value == 0:
		return "0.0" // and not the -0 of a product
	}
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if !strings.ContainsAny(text, "e.") {
		text += ".0"
	}
	return text
}
