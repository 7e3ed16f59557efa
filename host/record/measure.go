package record

import "time"

// Measure is what a measurement has found, at one end.
type Measure struct {
	// Name is that of the step, or of what stands around it, else its type and operation.
	Name      string `json:"name"`
	Type      string `json:"type"`                // latency, bandwidth, connect
	Operation string `json:"operation,omitempty"` // SEND, RDMA_WRITE, RDMA_READ
	Role      string `json:"role"`                // the end these figures are of
	Peer      string `json:"peer,omitempty"`
	File      string `json:"file,omitempty"` // where the step stands, if not in the case's file
	Line      int    `json:"line"`
	Column    int    `json:"column"`

	// Tags are those of the step and of the steps around it; a word has no value.
	Tags map[string]string `json:"tags,omitempty"`

	Size     int64         `json:"size,omitempty"`  // of a message, in bytes
	Depth    int           `json:"depth,omitempty"` // requests in flight of each queue pair
	QPs      int           `json:"qps,omitempty"`   // queue pairs, where there are several
	Both     bool          `json:"both,omitempty"`  // both directions at once
	Messages uint64        `json:"messages"`
	Errors   uint64        `json:"errors,omitempty"` // connections that failed
	Cut      bool          `json:"cut,omitempty"`    // ended early, by a threshold with abort_on_fail
	Bytes    uint64        `json:"bytes,omitempty"`
	Took     time.Duration `json:"took_ns"` // the timed part, of the wall clock

	BitsPerSecond     float64 `json:"bits_per_second,omitempty"`
	MessagesPerSecond float64 `json:"messages_per_second,omitempty"`

	// Latency has the distributions by what they are of: "total", or the steps of a connection.
	Latency []Distribution `json:"latency,omitempty"`
	// Intervals are what was done over time.
	Intervals []Interval `json:"intervals,omitempty"`
}

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
	// Took is how long all of them together took, where they were done one after another or together: the steps of
	// connections in lockstep.
	Took time.Duration `json:"took_ns,omitempty"`
	// HDR is the whole histogram: HdrHistogram's V2 form, compressed, in base64.
	HDR string `json:"hdr,omitempty"`
}

// IntervalRates are the rates of each interval of one or more ends together, in bits a second.  What was left
// over at the end is no interval: a few microseconds have any rate.
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
	Value  string `json:"value,omitempty"` // what it was held against, with its unit
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it could not be checked: no samples
	Line   int    `json:"line"`
	Column int    `json:"column"`
}
