package record

// Baseline is what an earlier run has found, by the ids of its cases.
type Baseline map[string]*Earlier

// Earlier is a case in an earlier run.
type Earlier struct {
	// Results are those of the attempts that passed: how long a failure took says nothing of speed.
	Results []Result
	// Measures are what was measured, of each end and size the last.
	Measures []Measure
}

// Key tells measurements of one case apart that are not repetitions of each other.
func (m *Measure) Key() MeasureKey {
	key := MeasureKey{Name: m.Name, Type: m.Type, Role: m.Role, Size: m.Size}
	for _, knob := range m.Knobs() {
		key.Knobs += knob.Value + "\n"
	}
	return key
}

// MeasureKey is what two runs of one measurement have in common.
type MeasureKey struct {
	Name, Type, Role string
	Size             int64
	Knobs            string // what else it was made with
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
