package verb

import (
	"fmt"
	"slices"
	"strconv"

	"rdmarun/host/scenario/mesh"
	"rdmarun/rdmacore"
)

// meshArguments are the pairs to measure, how to measure them, and when one is bad.
type meshArguments struct {
	Nodes     instances           `arg:"role,required" doc:"the counted role; its instances are the nodes"`
	Pairs     optional[MeshPairs] `arg:"pairs" doc:"the pairs. all (default): each pair once. ring: each node with the next. bisection: each of the first half with one of the second, at once. {random: K}: K random rounds of all, {random: K, seed: S} other ones. {incast: N}: N others at once to each in turn, compared by their sum. A list has numbers or names: [[0, 1], [2, 3]]"`
	Measure   measureKnobs        `arg:"measure,required" doc:"what is measured of each pair: the arguments of 'measure' without 'from' and 'to'"`
	Tolerance optional[fraction]  `arg:"tolerance" doc:"the part of the best value that a pair must reach (default 93%). For latency, the part of the pair's own value that the least must be (default 1/2.1: more than 2.1 times the least is too long)"`
}

// Patterns of pairs.
const (
	pairsAll       = "all"
	pairsRing      = "ring"
	pairsBisection = "bisection"
	pairsRandom    = "random"
	pairsIncast    = "incast"
	pairsList      = "list"
)

// MeshPatterns are the words of pairs that are no more than a word, MeshCounts those with a number.
func MeshPatterns() []string { return []string{pairsAll, pairsRing, pairsBisection} }

// MeshCounts are the words of pairs that have a number.
func MeshCounts() []string { return []string{pairsRandom, pairsIncast} }

// MeshPairs are the pairs of a mesh.
type MeshPairs struct {
	// Pattern is one of MeshPatterns or MeshCounts, or "" for the List.
	Pattern string
	// Count is that of MeshCounts, Seed what random pairs are drawn from.
	Count int
	Seed  uint64
	// List has pairs by the names or numbers of instances.
	List [][2]string
}

// String is the pairs as a scenario writes them, without a list's.
func (p MeshPairs) String() string {
	switch {
	case p.Pattern == "":
		return fmt.Sprintf("%d pairs", len(p.List))
	case p.Count > 0:
		return fmt.Sprintf("{%s: %d}", p.Pattern, p.Count)
	}
	return p.Pattern
}

// pattern is the word for records.
func (a *meshArguments) pattern() string {
	switch {
	case !a.Pairs.Given:
		return pairsAll
	case a.Pairs.Value.Pattern == "":
		return pairsList
	}
	return a.Pairs.Value.Pattern
}

// meshed is the result of a mesh.
type meshed struct {
	Outliers int    `result:"outliers" doc:"pairs that are too far from the best at any size, also when measured again"`
	Suspects int    `result:"suspects" doc:"pairs that were too far from it at first"`
	Lost     int    `result:"lost" default:"0" doc:"pairs that could not be measured"`
	Pairs    int    `result:"pairs" doc:"pairs that were measured"`
	Rounds   int    `result:"rounds" doc:"rounds of pairs at once, without those of the second look"`
	Worst    int    `result:"worst,varies" doc:"the value of the worst pair, in percent of the best"`
	Blame    string `result:"blame" words:"none|node|host|device|labels|label|pairs" doc:"the explanation of outliers and lost pairs. none: there are none. labels: they are between two values of a label. pairs: they have nothing in common"`
	Blamed   string `result:"blamed" doc:"the node, host, device or label: 'node[3]', 'rack=r1', of two 'rack=r1, rack=r2'; empty without one"`
	Cut      bool   `result:"cut" doc:"a threshold with abort_on_fail ended it early"`
	// text is the sentence of the blame.
	text string
}

func (m meshed) summary() string {
	text := fmt.Sprintf("%d pairs in %d rounds, %d outliers", m.Pairs, m.Rounds, m.Outliers)
	if m.Lost > 0 {
		text += fmt.Sprintf(", %d lost", m.Lost)
	}
	if m.text != "" {
		text += ": " + m.text
	}
	return text
}

func (a *meshArguments) needs() string { return a.Measure.needs() }

// check refuses pairs that there are not, and what the measurement refuses.
func (a *meshArguments) check() *Refusal {
	if a.Tolerance.known() && a.Tolerance.Value <= 0 {
		return &Refusal{Argument: "tolerance", Message: "every pair comes within it", Hint: "tolerance: 93%"}
	}
	if refusal := a.checkPairs(); refusal != nil {
		return refusal
	}
	if !a.Measure.Kind.known() || a.Measure.Operation.Deferred {
		return nil
	}
	if len(a.Measure.Stages) > 0 {
		return &Refusal{
			Argument: "measure", Message: "stages: the pairs of a mesh are compared under one load",
			Hint: "duration: 1s",
		}
	}
	between := measureArguments{measureKnobs: a.Measure}
	if _, refusal := between.specs(); refusal != nil {
		return &Refusal{Argument: "measure", Message: refusal.of(), Hint: refusal.Hint}
	}
	return nil
}

// of prefixes the refusal with the argument's name.
func (r *Refusal) of() string {
	if r.Meaningless {
		return r.Argument + " " + r.Message
	}
	return r.Argument + ": " + r.Message
}

func (a *meshArguments) checkPairs() *Refusal {
	nodes := len(a.Nodes)
	if nodes == 0 || !a.Pairs.known() {
		return nil
	}
	pairs := a.Pairs.Value
	refuse := func(hint, format string, args ...any) *Refusal {
		return &Refusal{Argument: "pairs", Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	seen := make(map[mesh.Pair]bool)
	for _, pair := range pairs.List {
		for _, name := range pair {
			if a.node(name) < 0 {
				return refuse(
					fmt.Sprintf("there are %s to %s", a.Nodes[0], a.Nodes[nodes-1]), "the role has no %s", name,
				)
			}
		}
		switch ends := (mesh.Pair{From: a.node(pair[0]), To: a.node(pair[1])}); {
		case ends.From == ends.To:
			return refuse("", "a pair has two ends, and this is %s twice", a.Nodes[ends.From])
		case seen[ends]:
			return refuse("", "%s and %s occur twice", a.Nodes[ends.From], a.Nodes[ends.To])
		default:
			seen[ends] = true
		}
	}
	switch most := mesh.MaxRandom(nodes); {
	case pairs.Pattern == pairsRandom && pairs.Count > most:
		return refuse("pairs: all", "%d nodes meet each other in %d rounds, and these are %d", nodes, most, pairs.Count)
	case pairs.Pattern == pairsIncast && pairs.Count >= nodes:
		return refuse(
			fmt.Sprintf("pairs: {incast: %d}", nodes-1), "of %d nodes %d can send to one, and not %d", nodes, nodes-1,
			pairs.Count,
		)
	}
	return nil
}

// node is the place of an instance by its name or number; -1 for none.
func (a *meshArguments) node(name string) int {
	if number, err := strconv.Atoi(name); err == nil && number >= 0 && number < len(a.Nodes) {
		return number
	}
	return slices.Index(a.Nodes, name)
}

// rounds are the pairs in the rounds in which they are measured.
func (a *meshArguments) rounds() []mesh.Round {
	nodes, pairs := len(a.Nodes), a.Pairs.Value
	switch a.pattern() {
	case pairsRing:
		return mesh.Ring(nodes)
	case pairsBisection:
		return mesh.Bisection(nodes)
	case pairsRandom:
		return mesh.Random(nodes, pairs.Count, pairs.Seed)
	case pairsIncast:
		return mesh.Incast(nodes, pairs.Count)
	case pairsList:
		list := make([]mesh.Pair, len(pairs.List))
		for i, pair := range pairs.List {
			list[i] = mesh.Pair{From: a.node(pair[0]), To: a.node(pair[1])}
		}
		return mesh.List(list)
	}
	return mesh.All(nodes)
}

// limit is what is too far from the best.
func (a *meshArguments) limit() mesh.Limit {
	less := a.Measure.Kind.Value == rdmacore.MeasureLatency
	switch {
	case !a.Tolerance.Given && less:
		return mesh.Limit{Less: true, Tolerance: mesh.UsualTime}
	case !a.Tolerance.Given:
		return mesh.Limit{Tolerance: mesh.UsualRate}
	case less:
		return mesh.Limit{Less: true, Tolerance: 1 / float64(a.Tolerance.Value)}
	}
	return mesh.Limit{Tolerance: float64(a.Tolerance.Value)}
}
