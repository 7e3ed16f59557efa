package compile

import (
	"slices"

	"rdmarun/rdmacore"
)

// labels are what thresholds choose by, each with the values that it can have; nil where only the run tells.
type labels map[string][]string

// source is what measures, a step or a whole case, as far as it is known before the run.
type source struct {
	// metrics are those that it has samples of.
	metrics []string
	labels  labels
	// never tells that it stands behind an `if` that does not hold, whatever comes.
	never bool
}

// isOf tells whether a threshold may choose what the source measures.  Which size does not count: a limit on one that
// nothing measures shall fail, and not be left out.
func (s *source) isOf(t *Threshold) bool {
	if !slices.Contains(s.metrics, t.Metric) {
		return false
	}
	for i := range t.Selectors {
		values, has := s.labels[t.Selectors[i].Name]
		if !has || values != nil && !slices.Contains(values, t.Selectors[i].Value) {
			return false
		}
	}
	return true
}

// enter notes that what is compiled next stands in a step.
func (c *compiler) enter(step *Step) (leave func()) {
	c.around = append(c.around, step)
	return func() { c.around = c.around[:len(c.around)-1] }
}

// enterLoop notes a loop, whose rounds are timed if it has a name and stands in no other such loop.
func (c *compiler) enterLoop(name string) (leave func()) {
	if name == "" || c.inLoop {
		return func() {}
	}
	c.addSource([]string{"loop"}, labels{"name": {name}})
	c.inLoop = true
	return func() { c.inLoop = false }
}

// measuring notes a step with the verb measure.
func (c *compiler) measuring(call *Call) {
	kind, kindKnown := call.constant("kind").(string)
	operation, operationKnown := call.constant("op").(string)
	connect := rdmacore.MeasureConnect.String()
	metrics, of := []string{kind}, []string{rdmacore.StepTotal.String()}
	known := labels{"kind": {kind}, "op": {operation}, "name": {kind + " " + operation}, "of": of, "role": nil, "peer": nil, sizeSelector: nil}
	switch {
	case !kindKnown:
		metrics = append(slices.Clone(call.Verb.Arguments[call.Verb.Argument("kind")].Words), connectRate)
		known["kind"], known["op"], known["name"], known["of"] = nil, nil, nil, nil
	case kind == connect:
		for step := rdmacore.StepTotal + 1; step <= rdmacore.StepDestroy; step++ {
			of = append(of, step.String())
		}
		metrics = append(metrics, connectRate)
		known["name"], known["of"] = []string{kind}, of
		delete(known, sizeSelector)
	case !operationKnown:
		known["op"], known["name"] = nil, nil
	}
	from, fromKnown := call.constant("from").(string)
	to, toKnown := call.constant("to").(string)
	if fromKnown && toKnown {
		known["role"], known["peer"] = []string{from, to}, []string{from, to} // of both, where both transmit
	}
	for _, step := range c.around {
		if step.Name != nil {
			known["name"] = step.Name.words()
		}
	}
	c.addSource(metrics, known)
}

// words is the text of a value that is known before the run; nil for any other.
func (v *Value) words() []string {
	if text, known := v.constant.(string); known && v.compute == nil {
		return []string{text}
	}
	return nil
}

// addSource notes what measures in the current step, which has the tags of the steps around it, too.
func (c *compiler) addSource(metrics []string, known labels) {
	found := &source{metrics: metrics, labels: known}
	for _, step := range c.around {
		for _, tag := range step.Tags {
			known[tag.Name] = []string{""}
			if tag.Value != nil {
				known[tag.Name] = tag.Value.words()
			}
		}
		if step.If != nil {
			holds, constant := step.If.Constant()
			found.never = found.never || constant && holds == false
		}
	}
	c.facts.sources = append(c.facts.sources, found)
	for _, metric := range metrics {
		if c.choices[metric] == nil {
			c.choices[metric] = make(map[string]map[string]bool)
		}
		for name, values := range known {
			if c.choices[metric][name] == nil {
				c.choices[metric][name] = make(map[string]bool)
			}
			for _, value := range values {
				c.choices[metric][name][value] = true
			}
		}
	}
}
