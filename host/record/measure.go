package record

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// StageTag is the tag of a measurement that is a stage of another one, with the name of the stage.
const StageTag = "stage"

// What is what is measured.
type What struct {
	// Name is that of the step, or of a step around it, else the type and operation.
	Name      string `json:"name"`
	Type      string `json:"type"`                // latency, bandwidth, connect
	Operation string `json:"operation,omitempty"` // SEND, RDMA_WRITE, RDMA_READ
}

// How is where the step of a measurement stands, and how it measures.
type How struct {
	File   string `json:"file,omitempty"` // where the step stands, if not in the case's file
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Tags are those of the step and of the steps around it, and StageTag; a word has no value.
	Tags map[string]string `json:"tags,omitempty"`

	Size  int64 `json:"size,omitempty"`  // of a message, in bytes
	Depth int   `json:"depth,omitempty"` // requests in flight of each queue pair
	QPs   int   `json:"qps,omitempty"`   // queue pairs of a pair, where there are several
	Both  bool  `json:"both,omitempty"`  // both directions at once
}

// Measure is what a measurement has found, at one end.
type Measure struct {
	What
	Role string `json:"role"` // the end these figures are of
	Peer string `json:"peer,omitempty"`
	// Ends are what two runs call them alike, of a pair of a mesh; otherwise they are the roles.
	Ends [2]string `json:"-"`
	How

	Messages uint64        `json:"messages"`
	Errors   uint64        `json:"errors,omitempty"` // connections that failed
	Cut      bool          `json:"cut,omitempty"`    // ended early, by a threshold with abort_on_fail
	Bytes    uint64        `json:"bytes,omitempty"`
	Took     time.Duration `json:"took_ns"` // the timed part, of the wall clock

	BitsPerSecond     float64 `json:"bits_per_second,omitempty"`
	MessagesPerSecond float64 `json:"messages_per_second,omitempty"`

	// Latency has a distribution for "total", or one for each step of a connection.
	Latency []Distribution `json:"latency,omitempty"`
	// Intervals are what was done over time.  Those of a stage count from the beginning of the first.
	Intervals []Interval `json:"intervals,omitempty"`
}

// Since is what a measurement has done since it was at an earlier figure of its own, with that time as its one
// interval.  A latency is of the whole measurement until then, without its histogram.
func (m *Measure) Since(earlier *Measure) *Measure {
	part := *m
	begin := time.Duration(0)
	if earlier != nil {
		begin = earlier.Took
		part.Messages, part.Bytes, part.Errors = m.Messages-earlier.Messages, m.Bytes-earlier.Bytes,
			m.Errors-earlier.Errors
	}
	part.Took = m.Took - begin
	part.Intervals = []Interval{{Begin: begin, End: m.Took, Messages: part.Messages, Bytes: part.Bytes}}
	part.BitsPerSecond, part.MessagesPerSecond = 0, 0
	if seconds := part.Took.Seconds(); seconds > 0 {
		part.MessagesPerSecond = float64(part.Messages) / seconds
		if m.Type == "bandwidth" {
			part.BitsPerSecond = float64(part.Bytes) * 8 / seconds
		}
	}
	return part.WithoutHistograms()
}

// WithoutHistograms is a copy without the histograms, which are most of its bytes.
func (m *Measure) WithoutHistograms() *Measure {
	short := *m
	short.Latency = slices.Clone(m.Latency)
	for i := range short.Latency {
		short.Latency[i].HDR = ""
	}
	return &short
}

// HasBandwidth tells whether BitsPerSecond is a result, which may be 0.  Messages without payload have no bandwidth.
func (m *Measure) HasBandwidth() bool { return m.Type == "bandwidth" && m.Size > 0 && m.Took > 0 }

// HasRate tells whether MessagesPerSecond is a result, which may be 0.
func (m *Measure) HasRate() bool { return m.Took > 0 }

// Distribution is a histogram of times, in nanoseconds.
type Distribution struct {
	Of     string  `json:"of"`
	Count  int64   `json:"count"`
	Min    int64   `json:"min_ns"`
	Max    int64   `json:"max_ns"`
	Mean   float64 `json:"mean_ns"`
	StdDev float64 `json:"stddev_ns"`
	P50    int64   `json:"p50_ns"`
	P90    int64   `json:"p90_ns"`
	P99    int64   `json:"p99_ns"`
	P999   int64   `json:"p999_ns"`
	P9999  int64   `json:"p9999_ns"`
	// Took is how long all of them together took, for the steps of connections in lockstep.
	Took time.Duration `json:"took_ns,omitempty"`
	// HDR is the whole histogram: HdrHistogram's V2 form, compressed, in base64.
	HDR string `json:"hdr,omitempty"`
}

// Limits of figures that another process tells: more than any device does, and so few that sums and ratios of them are
// numbers.
const (
	mostBits, mostMessages, leastRate = 1e18, 1e15, 1e-6
	mostCounted                       = 1 << 56
	mostDistributions                 = 64
	mostText                          = 4 << 10
)

// Check tells what cannot be true of a measurement that another process tells.
func (m *Measure) Check() error {
	for _, each := range []struct {
		what string
		is   bool
	}{
		{fmt.Sprintf("%g bits a second", m.BitsPerSecond), !isRate(m.BitsPerSecond, mostBits)},
		{fmt.Sprintf("%g messages a second", m.MessagesPerSecond), !isRate(m.MessagesPerSecond, mostMessages)},
		{
			fmt.Sprintf("%d messages of %d bytes together, and %d errors", m.Messages, m.Bytes, m.Errors),
			max(m.Messages, m.Bytes, m.Errors) > mostCounted,
		},
		{
			fmt.Sprintf("messages of %d bytes, %d in flight of %d queue pairs", m.Size, m.Depth, m.QPs),
			m.Size < 0 || m.Depth < 0 || m.QPs < 0,
		},
		{fmt.Sprintf("a time of %d ns", m.Took), m.Took < 0},
		{fmt.Sprintf("%d distributions", len(m.Latency)), len(m.Latency) > mostDistributions},
		{fmt.Sprintf("a text of %d bytes", m.longestText()), m.longestText() > mostText},
	} {
		if each.is {
			return fmt.Errorf("no measurement has %s", each.what)
		}
	}
	for i := range m.Intervals {
		if each := &m.Intervals[i]; each.Begin < 0 || each.End < each.Begin ||
			max(each.Messages, each.Bytes) > mostCounted {
			return fmt.Errorf("no measurement has %d bytes from %d to %d ns", each.Bytes, each.Begin, each.End)
		}
	}
	room := HistogramRoom
	for i := range m.Latency {
		d := &m.Latency[i]
		if min(d.Count, d.Min, d.Max, d.P50, d.P90, d.P99, d.P999, d.P9999, int64(d.Took)) < 0 ||
			!isRate(d.Mean, mostBits) || !isRate(d.StdDev, mostBits) {
			return fmt.Errorf("no measurement has %d times of %d to %d ns", d.Count, d.Min, d.Max)
		}
		if d.HDR == "" {
			continue
		}
		if _, err := ReadHistogram(d.HDR, &room); err != nil {
			return fmt.Errorf("the histogram of %d times cannot be read: %w", d.Count, err)
		}
	}
	return nil
}

// longestText is how many bytes the longest text has, but histograms.
func (m *Measure) longestText() int {
	longest := max(len(m.Name), len(m.Type), len(m.Operation), len(m.Role), len(m.Peer), len(m.File))
	for name, value := range m.Tags {
		longest = max(longest, len(name), len(value))
	}
	for i := range m.Latency {
		longest = max(longest, len(m.Latency[i].Of))
	}
	return longest
}

// isRate tells whether a figure is one.
func isRate(figure, most float64) bool { return figure == 0 || figure >= leastRate && figure <= most }

// IntervalRates are the rates of each interval of one or more ends together, in bits a second.  The rest at the end is
// left out: the rate of a few microseconds means nothing.
func IntervalRates(ends ...*Measure) []float64 {
	var rates []float64
	for i := range ends[0].Intervals {
		sum := 0.0
		for _, m := range ends {
			if i >= len(m.Intervals) {
				return rates
			}
			took := m.Intervals[i].End - m.Intervals[i].Begin
			if took <= (m.Intervals[0].End-m.Intervals[0].Begin)/2 {
				return rates
			}
			sum += float64(m.Intervals[i].Bytes) * 8 / took.Seconds()
		}
		rates = append(rates, sum)
	}
	return rates
}

// Interval is a part of a measurement.
type Interval struct {
	Begin    time.Duration `json:"begin_ns"`
	End      time.Duration `json:"end_ns"`
	Messages uint64        `json:"messages"`
	Bytes    uint64        `json:"bytes"`
}

// String is the limit with what was found, in one line.
func (t *Threshold) String() string {
	switch {
	case t.Reason != "":
		return t.Text + ": " + t.Reason
	case t.Value != "":
		return t.Text + ": " + t.Value
	}
	return t.Text
}

// Threshold is a limit that was checked.
type Threshold struct {
	Text   string `json:"text"`            // as the scenario has it
	Value  string `json:"value,omitempty"` // what it was compared with, with its unit
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it could not be checked: no samples
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Metric and Field are what it is about, "bandwidth" and "avg".
	Metric string `json:"metric,omitempty"`
	Field  string `json:"field,omitempty"`
	// Bounds are what it allows of each measurement.
	Bounds []Bound `json:"bounds,omitempty"`
}

// Bound is a limit of one measurement, in nanoseconds, bits a second, or what the field counts.
type Bound struct {
	Name  string  `json:"name"` // of the measurement
	Of    string  `json:"of,omitempty"`
	Size  int64   `json:"size,omitempty"`
	Value float64 `json:"value"`
}

// MostBounds is how many a threshold has.
const MostBounds = 1024

// Knobs are the settings of a measurement besides its size and role, in words, the tags last: what may distinguish it
// from others of its name.
func (m *Measure) Knobs() []Fact {
	var list []Fact
	add := func(name, value string, worth bool) {
		if worth {
			list = append(list, Fact{name, value})
		}
	}
	add("operation", m.Operation, m.Operation != "")
	add("both", "both ways", m.Both)
	add("depth", fmt.Sprintf("depth %d", m.Depth), m.Depth > 0)
	add("qps", fmt.Sprintf("%d queue pairs", m.QPs), m.QPs > 1)
	for _, tag := range slices.Sorted(maps.Keys(m.Tags)) {
		text := tag
		if value := m.Tags[tag]; value != "" {
			text += "=" + value
		}
		add("tag "+tag, text, tag != "depth" || m.Depth == 0 || m.Tags[tag] != fmt.Sprint(m.Depth)) // once is enough
	}
	return list
}

// Varying names the knobs that are not the same for all.
func Varying(measures []Measure) map[string]bool {
	values, count := make(map[string]string), make(map[string]int)
	vary := make(map[string]bool)
	for i := range measures {
		for _, each := range measures[i].Knobs() {
			if first, known := values[each.Name]; known && first != each.Value {
				vary[each.Name] = true
			}
			values[each.Name] = each.Value
			count[each.Name]++
		}
	}
	for name, n := range count {
		vary[name] = vary[name] || n < len(measures)
	}
	return vary
}

// Baseline is what an earlier run has found, by the ids of its cases.
type Baseline map[string]*Earlier

// Earlier is a case in an earlier run.
type Earlier struct {
	// Results are those of the attempts that passed: the time of a failure says nothing about speed.
	Results []Result
	// Measures are what was measured, of each end and size the last.
	Measures []Measure
	// Pairs are those of meshes, each as it was last; their roles are their Ends.
	Pairs map[MeasureKey]Measure
}

// Key is the same for measurements of one case that are repetitions of each other, and for no others.
func (m *Measure) Key() MeasureKey {
	key := MeasureKey{Name: m.Name, Type: m.Type, Role: m.Role, Peer: m.Peer, Size: m.Size}
	if m.Ends[0] != "" {
		key.Role, key.Peer = m.Ends[0], m.Ends[1]
	}
	for _, knob := range m.Knobs() {
		key.Knobs += knob.Value + "\n"
	}
	return key
}

// MeasureKey is what two runs of one measurement have in common.
type MeasureKey struct {
	Name, Type, Role, Peer string
	Size                   int64
	Knobs                  string // what else it was made with
}

// Add notes a measurement; it takes the place of an earlier repetition.
func (e *Earlier) Add(m Measure) {
	for i := range e.Measures {
		if e.Measures[i].Key() == m.Key() {
			e.Measures[i] = m
			return
		}
	}
	e.Measures = append(e.Measures, m)
}

// AddMesh notes the pairs of a mesh.
func (e *Earlier) AddMesh(found *Mesh) {
	for pair, m := range found.Measures() {
		if pair.Lost == "" {
			m.Role, m.Peer, m.Ends = m.Ends[0], m.Ends[1], [2]string{}
			e.AddPair(*m)
		}
	}
}

// AddPair notes a pair of a mesh.
func (e *Earlier) AddPair(m Measure) {
	if e.Pairs == nil {
		e.Pairs = make(map[MeasureKey]Measure)
	}
	e.Pairs[m.Key()] = m
}

// Loop is a named repeat, with the times of its rounds on the wall clock.
type Loop struct {
	Name string `json:"name"`
	// Tags are those of its step and of the steps around it.
	Tags   map[string]string `json:"tags,omitempty"`
	Rounds int               `json:"rounds"`
	// Late is how many rounds of a repeat with a rate began later than they were due, and Latest how late the latest
	// did.  The times of a round count from when it was due.
	Late   int           `json:"late,omitempty"`
	Latest time.Duration `json:"latest_ns,omitempty"`
	// Dropped is how many rounds of a repeat with a rate and a time were due within the time and did not begin.
	Dropped int `json:"dropped,omitempty"`

	Min    time.Duration `json:"min_ns"`
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
	// Clock are the times on the provider's clock, which thresholds use, if that is a virtual one.
	Clock *Times `json:"clock,omitempty"`
}

// Times are the spread of several times.
type Times struct {
	Min    time.Duration `json:"min_ns"`
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
}

// OnClock are the times on the provider's clock.
func (l *Loop) OnClock() Times {
	if l.Clock != nil {
		return *l.Clock
	}
	return Times{Min: l.Min, Median: l.Median, P99: l.P99, Max: l.Max}
}
