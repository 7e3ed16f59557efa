package verb

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/tags"
	"rdmarun/rdmacore"
)

// A measurement with stages changes its load while it runs. The stages follow each other on the same connections, and
// each size goes through all of them. A stage changes the load of the device, and not what is measured. Each stage has
// values of its own with the tag "stage": reports, thresholds and comparisons choose by tags.

// stageArguments are a stage.  What it leaves out is that of the measurement.
type stageArguments struct {
	For          time.Duration  `arg:"for,required" min:"1ns" max:"168h" doc:"how long it takes"`
	Name         string         `arg:"name" doc:"its tag (default: its number, from 1). A threshold chooses it by 'bandwidth{stage=NAME}'"`
	Depth        int            `arg:"depth" min:"1" max:"0x10000" doc:"bandwidth: requests in flight of each queue pair"`
	QPs          optional[int]  `arg:"qps" min:"1" max:"64" doc:"bandwidth: queue pairs that transmit; those of all stages are connected before the first"`
	RateBits     optional[rate] `arg:"rate_limit" doc:"bandwidth: limit of bits a second for each direction and queue pair"`
	RateMessages int            `arg:"rate_messages" min:"1" max:"0x10000000000" doc:"bandwidth: limit of messages a second for each direction and queue pair"`
	Gap          time.Duration  `arg:"gap" min:"1ns" max:"168h" doc:"latency: pause between round trips"`
	InFlight     int            `arg:"in_flight" min:"1" max:"4096" doc:"connect: connections under way at once"`
}

const (
	maxStageName = 64
	maxStages    = 256
	// stageSamples are the intervals of the shortest stage where the scenario sets no interval;
	// maxSample is the longest interval then.
	stageSamples = 4
	maxSample    = time.Second
)

// part is what is measured in one go: a size, or a stage of one.
type part struct {
	spec  rdmacore.MeasureSpec
	qps   int
	stage string // its name; "" where there are no stages
	first bool   // of its size
}

// text is what is measured, "SEND 64 B, stage ramp".
func (p *part) text() string {
	text := "connections"
	if p.spec.Kind != rdmacore.MeasureConnect {
		text = p.spec.Operation.String() + " " + quantity.Bytes(int64(p.spec.Size))
	}
	if p.stage != "" {
		text += ", stage " + p.stage
	}
	return text
}

// parts are what is measured, one after another.
func (a *measureArguments) parts() ([]part, *Refusal) {
	loads, names := []*measureArguments{a}, []string{""}
	if len(a.Stages) > 0 {
		var refusal *Refusal
		if names, refusal = a.stageNames(); refusal != nil {
			return nil, refusal
		}
		loads = a.loads()
	}
	var specs [][]rdmacore.MeasureSpec
	for i, load := range loads {
		list, refusal := load.specs()
		if refusal != nil {
			return nil, a.ofStage(i, refusal)
		}
		specs = append(specs, list)
	}
	var parts []part
	for size := range specs[0] {
		for i, load := range loads {
			parts = append(parts, part{
				spec: specs[i][size], qps: max(load.QPs.Value, 1), stage: names[i], first: i == 0,
			})
		}
	}
	return parts, nil
}

// loads are the arguments of the measurement in each stage.
func (a *measureArguments) loads() []*measureArguments {
	sample := a.SampleEvery
	if sample == 0 {
		shortest := slices.MinFunc(a.Stages, func(a, b stageArguments) int { return int(a.For - b.For) }).For
		sample = max(min(shortest/stageSamples, maxSample), 1)
	}
	var list []*measureArguments
	for i := range a.Stages {
		of, stage := *a, &a.Stages[i]
		of.Stages, of.Duration, of.SampleEvery = nil, stage.For, sample
		if i > 0 {
			of.WarmupDuration, of.WarmupIterations = 0, 0 // it is warm
		}
		if stage.RateBits.Given || stage.RateMessages > 0 {
			of.RateBits, of.RateMessages = stage.RateBits, stage.RateMessages
		}
		if stage.QPs.Given {
			of.QPs = stage.QPs
		}
		of.Depth, of.InFlight, of.Gap = cmp.Or(stage.Depth, a.Depth), cmp.Or(stage.InFlight, a.InFlight),
			cmp.Or(stage.Gap, a.Gap)
		list = append(list, &of)
	}
	return list
}

// ofStage is the refusal of what a stage sets; what the measurement sets is refused as it is without stages.
func (a *measureArguments) ofStage(i int, refusal *Refusal) *Refusal {
	if len(a.Stages) == 0 {
		return refusal
	}
	plain := *a
	plain.Stages, plain.Duration = nil, a.Stages[i].For
	if _, own := plain.specs(); own != nil && own.Argument == refusal.Argument {
		return refusal
	}
	return &Refusal{Argument: "stages", Message: fmt.Sprintf("stage %d: %s", i+1, refusal.of()), Hint: refusal.Hint}
}

// stageNames are the names of the stages.
func (a *measureArguments) stageNames() ([]string, *Refusal) {
	var own []string
	for i := range a.Stages {
		own = append(own, a.Stages[i].Name)
	}
	return NamesOfStages(own)
}

// NamesOfStages are the names of stages, which must be distinct. own has "" for a stage without a name of its own.
func NamesOfStages(own []string) ([]string, *Refusal) {
	if len(own) > maxStages {
		return nil, &Refusal{
			Argument: "stages", Message: fmt.Sprintf("%d stages are more than %d", len(own), maxStages),
		}
	}
	names := make([]string, len(own))
	for i := range own {
		name := stageName(own[i], i)
		switch {
		case len(name) > maxStageName || !tags.IsTag(name):
			return nil, &Refusal{
				Argument: "stages",
				Message:  fmt.Sprintf("stage %d: %.80q is not a name: a threshold cannot choose it", i+1, name),
				Hint:     fmt.Sprintf("use up to %d letters, digits and any of _.:-", maxStageName),
			}
		case slices.Contains(names[:i], name):
			return nil, &Refusal{
				Argument: "stages",
				Message:  fmt.Sprintf("stage %d: stage %d is called %q, too", i+1, slices.Index(names, name)+1, name),
				Hint:     "give each stage a name of its own",
			}
		}
		names[i] = name
	}
	return names, nil
}

// stageName is the name of the i-th stage, which may have none of its own.
func stageName(own string, i int) string { return cmp.Or(own, strconv.Itoa(i+1)) }

// StageNames are the names of the stages that the argument `stages` has, as a step gives it; nil where it has none.
func StageNames(stages any) (names []string) {
	list, _ := stages.([]map[string]any)
	for i, stage := range list {
		name, _ := stage["name"].(string)
		names = append(names, stageName(name, i))
	}
	return names
}

// StagesTake is how long the stages take that the argument `stages` has, as a step gives it; 0 where it has none.
func StagesTake(stages any) (took time.Duration) {
	list, _ := stages.([]map[string]any)
	for _, stage := range list {
		length, _ := stage["for"].(time.Duration)
		took += length
	}
	return took
}

// qps is how many queue pairs are connected.
func (m *measuring) qps() int {
	return slices.MaxFunc(m.parts, func(a, b part) int { return a.qps - b.qps }).qps
}

// depths are the most requests in flight, and receives posted, of all parts; 0 where one of them leaves it to the core.
func (m *measuring) depths() (sends, receives int) {
	sends, receives = m.parts[0].spec.Depth, m.parts[0].spec.ReceiveDepth
	for i := range m.parts {
		spec := &m.parts[i].spec
		sends, receives = max(sends, spec.Depth), max(receives, spec.ReceiveDepth)
		if spec.Depth == 0 {
			sends = max(sends, defaultDepth)
		}
	}
	return sends, receives
}

// continued are figures of the current stage with the times of their intervals since the first stage began, for
// charts.
func (m *measuring) continued(found []*record.Measure) []*record.Measure {
	for _, each := range found {
		if m.elapsed > 0 && len(each.Intervals) > 0 {
			each.Intervals = slices.Clone(each.Intervals)
			for i := range each.Intervals {
				each.Intervals[i].Begin += m.elapsed
				each.Intervals[i].End += m.elapsed
			}
		}
	}
	return found
}

// tags are those of the figures of a part.
func (p *part) tags() map[string]string {
	if p.stage == "" {
		return nil
	}
	return map[string]string{record.StageTag: p.stage}
}
