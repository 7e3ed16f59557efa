package record

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// StageTag is the tag of a measurement that is a stage of another one, with the name of the stage.
const StageTag = "stage"

// What identifies a measurement.
type What struct {
	// Name is the name of the step, or of a step around it; otherwise the type and the operation.
	Name      string `json:"name"`
	Type      string `json:"type"`                // one of those below
	Operation string `json:"operation,omitempty"` // SEND, RDMA_WRITE, RDMA_READ
}

// How is the place of a measurement's step in the file, and the settings of the measurement.
type How struct {
	File   string `json:"file,omitempty"` // where the step is, if not in the case's file
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Tags are the tags of the step and the steps around it, and StageTag.  A word has an empty value.
	Tags map[string]string `json:"tags,omitempty"`

	Size  int64 `json:"size,omitempty"`  // of a message, in bytes
	Depth int   `json:"depth,omitempty"` // requests in flight of each queue pair
	QPs   int   `json:"qps,omitempty"`   // queue pairs of a pair, where there are several
	Both  bool  `json:"both,omitempty"`  // both directions at once
}

// Direction is both or one, as outputs label measurements.
func (h How) Direction() string {
	if h.Both {
		return "both"
	}
	return "one"
}

// Measure is the result of a measurement at one end.
type Measure struct {
	What
	Role string `json:"role"` // the end these figures are of
	Peer string `json:"peer,omitempty"`
	// Ends are the names of a mesh pair's ends that are equal in two runs; otherwise they are the roles.
	Ends [2]string `json:"-"`
	How

	Messages uint64        `json:"messages"`
	TooFew   bool          `json:"too_few,omitempty"` // fewer messages than its step demands, so that both fail
	Errors   uint64        `json:"errors,omitempty"`  // connections that failed
	Cut      bool          `json:"cut,omitempty"`     // ended early, by a threshold with abort_on_fail
	Bytes    uint64        `json:"bytes,omitempty"`
	Took     time.Duration `json:"took_ns"` // the timed part, of the wall clock

	BitsPerSecond     float64 `json:"bits_per_second,omitempty"`
	MessagesPerSecond float64 `json:"messages_per_second,omitempty"`

	// Latency has a distribution for "total", or one for each step of a connection.
	Latency []Distribution `json:"latency,omitempty"`
	// Printed is a value that a program has printed, under Name. Then the Type is ProgramType. Of the fields above
	// only Size is set, if the program has printed that as well.
	Printed *Printed `json:"printed,omitempty"`
	// Intervals are the results over time.  Those of a stage count from the beginning of the first stage.
	Intervals []Interval `json:"intervals,omitempty"`
}

// The types of measurements: those of measure, and values that programs have printed.
const (
	BandwidthType = "bandwidth"
	LatencyType   = "latency"
	ConnectType   = "connect"
	ProgramType   = "program"
)

// Printed is a value that a program has printed.
type Printed struct {
	Value float64 `json:"value"` // in Unit
	Unit  Unit    `json:"unit"`
}

// SI is the value in units of the SI: a time in seconds.
func (p *Printed) SI() (value float64, unit string) {
	switch p.Unit {
	case Nanoseconds:
		return p.Value / 1e9, "s"
	case Number:
		return p.Value, ""
	}
	return p.Value, string(p.Unit)
}

// Unit is what a printed value counts.
type Unit string

// The units.
const (
	Nanoseconds   Unit = "ns"
	BitsPerSecond Unit = "bit/s"
	PerSecond     Unit = "/s"
	Bytes         Unit = "B"
	Number        Unit = "1"
)

// Since is the difference to an earlier result of the same measurement, with this time as its only interval.  Its
// latency is that of the whole measurement, without the histogram.
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
		if m.Type == BandwidthType {
			part.BitsPerSecond = float64(part.Bytes) * 8 / seconds
		}
	}
	return part.WithoutHistograms()
}

// WithoutHistograms returns a copy without histograms, which are most of the bytes.
func (m *Measure) WithoutHistograms() *Measure {
	short := *m
	short.Latency = slices.Clone(m.Latency)
	for i := range short.Latency {
		short.Latency[i].HDR = ""
	}
	return &short
}

// HasBandwidth reports whether BitsPerSecond is a result, which may be 0.  Messages without payload have no bandwidth.
func (m *Measure) HasBandwidth() bool { return m.Type == BandwidthType && m.Size > 0 && m.Took > 0 }

// HasRate reports whether MessagesPerSecond is a result, which may be 0.
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

// Limits of results of another process: above what any device can do, and small enough that sums and ratios are finite.
const (
	maxBits, maxMessages, leastRate = 1e18, 1e15, 1e-6
	maxCounted                      = 1 << 56
	maxDistributions                = 64
	maxText                         = 4 << 10
)

// Check returns an error for an impossible result of another process.
func (m *Measure) Check() error {
	for _, each := range []struct {
		what string
		is   bool
	}{
		{fmt.Sprintf("%g bits a second", m.BitsPerSecond), !isRate(m.BitsPerSecond, maxBits)},
		{fmt.Sprintf("%g messages a second", m.MessagesPerSecond), !isRate(m.MessagesPerSecond, maxMessages)},
		{
			fmt.Sprintf("%d messages of %d bytes together, and %d errors", m.Messages, m.Bytes, m.Errors),
			max(m.Messages, m.Bytes, m.Errors) > maxCounted,
		},
		{
			fmt.Sprintf("messages of %d bytes, %d in flight of %d queue pairs", m.Size, m.Depth, m.QPs),
			m.Size < 0 || m.Depth < 0 || m.QPs < 0,
		},
		{fmt.Sprintf("a time of %d ns", m.Took), m.Took < 0},
		{
			fmt.Sprintf("a printed value %+v", m.Printed),
			m.Printed != nil && (!(math.Abs(m.Printed.Value) <= maxBits) || !slices.Contains(
				[]Unit{Nanoseconds, BitsPerSecond, PerSecond, Bytes, Number}, m.Printed.Unit,
			)),
		},
		{fmt.Sprintf("%d distributions", len(m.Latency)), len(m.Latency) > maxDistributions},
		{fmt.Sprintf("a text of %d bytes", m.longestText()), m.longestText() > maxText},
	} {
		if each.is {
			return fmt.Errorf("no measurement has %s", each.what)
		}
	}
	for i := range m.Intervals {
		if each := &m.Intervals[i]; each.Begin < 0 || each.End < each.Begin ||
			max(each.Messages, each.Bytes) > maxCounted {
			return fmt.Errorf("no measurement has %d bytes from %d to %d ns", each.Bytes, each.Begin, each.End)
		}
	}
	room := HistogramRoom
	for i := range m.Latency {
		d := &m.Latency[i]
		if min(d.Count, d.Min, d.Max, d.P50, d.P90, d.P99, d.P999, d.P9999, int64(d.Took)) < 0 ||
			!isRate(d.Mean, maxBits) || !isRate(d.StdDev, maxBits) {
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

// longestText is the length of the longest text, without histograms.
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

// isRate reports whether a value is a possible rate.
func isRate(figure, most float64) bool { return figure == 0 || figure >= leastRate && figure <= most }

// IntervalRates are the rates of each interval of one or more ends together, in bits a second, for as many intervals as
// all have.  An interval of less than half the usual length counts with the one before it, the first with the one after
// it.  On a busy host such intervals take a few microseconds, and their own rate means nothing.  None is left out, so
// that the average of one end is between the lowest and the highest rate.
func IntervalRates(ends ...*Measure) []float64 {
	count := len(ends[0].Intervals)
	for _, m := range ends[1:] {
		count = min(count, len(m.Intervals))
	}
	if count == 0 {
		return nil
	}
	usual := usualLength(ends[0].Intervals)
	var rates []float64
	for begin := 0; begin < count; {
		end := begin + 1
		for end < count && (begin == 0 && span(ends[0].Intervals[:end]) < usual/2 ||
			span(ends[0].Intervals[end:end+1]) < usual/2) {
			end++
		}
		sum := 0.0
		for _, m := range ends {
			bytes := uint64(0)
			for _, each := range m.Intervals[begin:end] {
				bytes += each.Bytes
			}
			if took := span(m.Intervals[begin:end]); took > 0 {
				sum += float64(bytes) * 8 / took.Seconds()
			}
		}
		rates, begin = append(rates, sum), end
	}
	return rates
}

// span is the time from the beginning of the first interval to the end of the last.
func span(intervals []Interval) time.Duration {
	return intervals[len(intervals)-1].End - intervals[0].Begin
}

// usualLength is the median length of intervals.
func usualLength(intervals []Interval) time.Duration {
	lengths := make([]time.Duration, len(intervals))
	for i := range intervals {
		lengths[i] = span(intervals[i : i+1])
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// Interval is a part of a measurement.
type Interval struct {
	Begin    time.Duration `json:"begin_ns"`
	End      time.Duration `json:"end_ns"`
	Messages uint64        `json:"messages"`
	Bytes    uint64        `json:"bytes"`
}

// Status is Passed or Failed.
func (t *Threshold) Status() Status {
	if t.OK {
		return Passed
	}
	return Failed
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
	Text  string `json:"text"`            // as the scenario has it
	Value string `json:"value,omitempty"` // what it was compared with, with its unit
	// Found is Value with all its digits: nanoseconds, bits a second, or what the field counts.
	Found  float64 `json:"found,omitempty"`
	OK     bool    `json:"ok"`
	Reason string  `json:"reason,omitempty"` // why it could not be checked: no samples
	Line   int     `json:"line"`
	Column int     `json:"column"`
	// Metric and Field are the checked value, "bandwidth" and "avg".
	Metric string `json:"metric,omitempty"`
	Field  string `json:"field,omitempty"`
	// Bounds are the allowed values of each measurement.
	Bounds []Bound `json:"bounds,omitempty"`
}

// Bound is a limit of one measurement, in nanoseconds, bits a second, or what the field counts.
type Bound struct {
	Name  string  `json:"name"` // of the measurement
	Of    string  `json:"of,omitempty"`
	Size  int64   `json:"size,omitempty"`
	Value float64 `json:"value"`
}

// MaxBounds is the maximum of a threshold's bounds.
const MaxBounds = 1024

// Knobs are the settings of a measurement other than its size and role, in words, the tags last.  They may distinguish
// measurements with the same name.
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

// Varying returns the names of the knobs with different values.
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

// Baseline has the results of an earlier run, by the ids of its cases.
type Baseline map[string]*Earlier

// Earlier has the results of a case in an earlier run.
type Earlier struct {
	// Results are the results of the attempts that passed: the time of a failure is not comparable.
	Results []Result
	// Measures are the last results of each end and size.
	Measures []Measure
	// Pairs are the last results of each pair of a mesh; their roles are their Ends.
	Pairs map[MeasureKey]Measure
}

// Key is equal for repetitions of one measurement of a case, and different for all others.
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

// MeasureKey identifies a measurement in two runs.
type MeasureKey struct {
	Name, Type, Role, Peer string
	Size                   int64
	Knobs                  string // the other settings
}

// Add adds a result; it replaces that of an earlier repetition.
func (e *Earlier) Add(m Measure) {
	for i := range e.Measures {
		if e.Measures[i].Key() == m.Key() {
			e.Measures[i] = m
			return
		}
	}
	e.Measures = append(e.Measures, m)
}

// AddMesh adds the pairs of a mesh.
func (e *Earlier) AddMesh(found *Mesh) {
	for pair, m := range found.Measures() {
		if pair.Lost == "" {
			m.Role, m.Peer, m.Ends = m.Ends[0], m.Ends[1], [2]string{}
			e.AddPair(*m)
		}
	}
}

// AddPair adds a pair of a mesh; it replaces an earlier result.
func (e *Earlier) AddPair(m Measure) {
	if e.Pairs == nil {
		e.Pairs = make(map[MeasureKey]Measure)
	}
	e.Pairs[m.Key()] = m
}

// Loop is a named repeat, with the wall-clock times of its rounds.
type Loop struct {
	Name string `json:"name"`
	// Tags are the tags of its step and the steps around it.
	Tags   map[string]string `json:"tags,omitempty"`
	Rounds int               `json:"rounds"` // 0 for a stage in which none began; it has no times
	// Late counts the rounds of a repeat with a rate that began later than they were due; Latest is the largest delay.
	// The time of a round counts from when it was due.
	Late   int           `json:"late,omitempty"`
	Latest time.Duration `json:"latest_ns,omitempty"`
	// Dropped counts the rounds of a repeat with a rate and a time that were due within the time and did not begin.
	Dropped int `json:"dropped,omitempty"`

	Min    time.Duration `json:"min_ns"`
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
	// Clock has the times on the provider's clock, which thresholds use, if that is virtual.
	Clock *Times `json:"clock,omitempty"`
}

// Times is the distribution of several times.
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
	return l.OnWall()
}

// OnWall are the times on the wall clock.
func (l *Loop) OnWall() Times { return Times{Min: l.Min, Median: l.Median, P99: l.P99, Max: l.Max} }

// ClockName is the clock of OnClock: "virtual" or "wall".
func (l *Loop) ClockName() string {
	if l.Clock != nil {
		return "virtual"
	}
	return "wall"
}

// In is the distribution in one line, under the names that thresholds have.
func (t *Times) In(print func(time.Duration) string) string {
	return fmt.Sprintf("min %s, p50 %s, p99 %s, max %s", print(t.Min), print(t.Median), print(t.P99), print(t.Max))
}

// LoopTitles are the names of loops.  Those of equal names have their tags.
func LoopTitles(loops []Loop) []string {
	count := make(map[string]int)
	for i := range loops {
		count[loops[i].Name]++
	}
	titles := make([]string, len(loops))
	for i := range loops {
		titles[i] = loops[i].Name
		if count[titles[i]] > 1 {
			titles[i] = strings.TrimSuffix(titles[i]+", "+TagText(loops[i].Tags), ", ")
		}
	}
	return titles
}

// TagText lists tags as a scenario has them: words, and names with values.
func TagText(tags map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		if value := tags[name]; value != "" {
			name += "=" + value
		}
		words = append(words, name)
	}
	return strings.Join(words, " ")
}
