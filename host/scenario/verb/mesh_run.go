package verb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdmarun/host/record"
	"rdmarun/host/scenario/mesh"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// meshing is a mesh step while it runs.
type meshing struct {
	call   *Call
	args   *meshArguments
	rounds []mesh.Round
	specs  []rdmacore.MeasureSpec // of each size
	// looks are what was found at first, and again.
	looks [2]map[mesh.Pair]*look
	cut   bool
	nodes []mesh.Node
	ends  func(from, to string) [2]string // of record.Mesh
}

// look is what one measurement of a pair has found.
type look struct {
	round int // from 0
	// sizes have the figures of each direction.
	sizes [][]*record.Measure
	err   error
	cut   bool // by a threshold
}

func meshPairs(ctx context.Context, call *Call, args *meshArguments) (meshed, error) {
	if refusal := args.check(); refusal != nil {
		return meshed{}, refusal.failure()
	}
	args.Measure.Histogram.Keep = some(false) // thousands of pairs would have too many
	m := &meshing{call: call, args: args, rounds: args.rounds()}
	var refusal *Refusal
	if m.specs, refusal = (&measureArguments{measureKnobs: args.Measure}).specs(); refusal != nil {
		return meshed{}, refusal.failure()
	}
	for i := range m.looks {
		m.looks[i] = make(map[mesh.Pair]*look)
	}
	if err := m.find(ctx); err != nil {
		return meshed{}, err
	}
	m.ends = m.header().Ends()
	if err := m.walk(ctx, 0, m.rounds, m.kind()+" of pairs, round"); err != nil {
		return meshed{}, err
	}
	if err := m.allLost(); err != nil {
		return meshed{}, err
	}
	if suspects := m.suspects(); len(suspects) > 0 && !m.cut {
		if err := m.walk(ctx, 1, m.again(suspects), m.kind()+" of suspects, round"); err != nil {
			return meshed{}, err
		}
	}
	return m.report(), nil
}

// walk measures the pairs of each round at once.
func (m *meshing) walk(ctx context.Context, at int, rounds []mesh.Round, what string) error {
	for i, round := range rounds {
		if m.cut {
			return nil
		}
		m.call.Progress(what, i+1, len(rounds))
		part := fmt.Sprintf("%d.%d", at, i)
		here := slices.DeleteFunc(slices.Clone(round), func(pair mesh.Pair) bool {
			return !m.here(pair.From) && !m.here(pair.To)
		})
		found := make([]*look, len(here))
		err := m.call.AtOnce(ctx, len(here), func(ctx context.Context, n int) error {
			found[n] = m.pair(ctx, here[n], part)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for n, pair := range here {
			if m.here(pair.From) {
				m.looks[at][pair] = found[n]
			}
		}
		if err := m.exchange(ctx, at, part, round); err != nil {
			return err
		}
		for _, pair := range round {
			m.looks[at][pair].round = i
			m.cut = m.cut || m.looks[at][pair].cut
		}
	}
	return nil
}

// pair measures one as `measure` does.  One that fails is lost, and the others go on: this is what is looked for.  Of
// one with only the second node here, it measures the half of that node.
func (m *meshing) pair(ctx context.Context, pair mesh.Pair, part string) *look {
	found := &look{}
	call := &Call{Verb: m.call.Verb, Testbed: m.call.Testbed}
	if peers := m.call.MeshPeers; peers != nil {
		call.PeerConn = func(from, to string) PeerConn { return peers.PeerConn(part, from, to) }
	}
	if m.here(pair.From) {
		if m.call.Abort != nil {
			call.Abort = func(sofar []*record.Measure) bool { return m.call.Abort(m.named(sofar)) }
		}
		call.Interval = m.call.Interval
		call.Measuring = func(part []*record.Measure) { m.call.Measuring(m.named(part)) }
		call.Measured = func(size []*record.Measure) { found.sizes = append(found.sizes, size) }
	}
	args := &measureArguments{
		From: roleName(m.args.Nodes[pair.From]), To: roleName(m.args.Nodes[pair.To]), measureKnobs: m.args.Measure,
	}
	var sums measured
	sums, found.err = measure(ctx, call, args)
	found.cut = sums.Cut
	return found
}

// named gives the figures of a pair the names of its ends.
func (m *meshing) named(found []*record.Measure) []*record.Measure {
	for _, each := range found {
		each.Ends = m.ends(each.Role, each.Peer)
	}
	return found
}

// tooFew are the figures of the sizes with too few messages, because of which the pair is lost.
func (l *look) tooFew() (sizes [][]*record.Measure) {
	for _, size := range l.sizes {
		if l.err != nil && slices.ContainsFunc(size, func(found *record.Measure) bool { return found.TooFew }) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// measures are the figures of pairs for thresholds, which fail where a pair has too few messages.
func (m *meshing) measures() (list [][]*record.Measure) {
	for _, pair := range m.ordered(func(mesh.Pair) bool { return true }) {
		sizes := m.last(pair).sizes
		if m.why(pair) != nil {
			sizes = m.last(pair).tooFew()
		}
		for _, size := range sizes {
			list = append(list, m.named(size))
		}
	}
	return list
}

// allLost is the error of a mesh of which no pair could be measured: then it is no cable.
func (m *meshing) allLost() error {
	for _, found := range m.looks[0] {
		if found.err == nil {
			return nil
		}
	}
	m.call.Meshed(nil, m.measures())
	return m.looks[0][m.rounds[0][0]].err
}

// kind is the type of the measurements.
func (m *meshing) kind() string { return m.args.Measure.Kind.Value.String() }

// what is what is measured.
func (m *meshing) what() record.What {
	what := record.What{Type: m.kind()}
	if op := m.args.Measure.Operation; op.Given {
		what.Operation = op.Value.String()
	}
	return what
}

// figures are the values of the pairs of a look, of one size and direction, that decide whether a pair is bad. For an
// incast it is what its target gets or waits for in all. A pair without a value is not in it.
func (m *meshing) figures(at, size, direction int) map[mesh.Pair]float64 {
	figures, sums := make(map[mesh.Pair]float64), make(map[int]float64)
	for pair, found := range m.looks[at] {
		measure := found.of(size, direction)
		if measure == nil {
			continue
		}
		figures[pair] = measure.Figures().Figure(m.kind())
		if m.args.limit().Less {
			sums[pair.To] = max(sums[pair.To], figures[pair])
		} else {
			sums[pair.To] += figures[pair]
		}
	}
	if m.args.pattern() == pairsIncast {
		for pair := range figures {
			figures[pair] = sums[pair.To]
		}
	}
	return figures
}

// of are the figures of one size and direction; nil where there are none.
func (l *look) of(size, direction int) *record.Measure {
	if l == nil || l.err != nil || size >= len(l.sizes) || direction >= len(l.sizes[size]) {
		return nil
	}
	return l.sizes[size][direction]
}

// best is the best figure of the first look.
func (m *meshing) best(size int) float64 {
	var all []float64
	for direction := range m.directions() {
		all = slices.AppendSeq(all, maps.Values(m.figures(0, size, direction)))
	}
	return m.args.limit().Best(all)
}

// directions is how many figures a pair has.
func (m *meshing) directions() int {
	if m.args.Measure.Bidirectional {
		return 2
	}
	return 1
}

// sizes is how many sizes were measured.
func (m *meshing) sizes() int {
	most := 0
	for _, found := range m.looks[0] {
		most = max(most, len(found.sizes))
	}
	return most
}

// ratings are the ratings of the pairs of one size and direction.
type ratings struct {
	// suspects were too far from the best at first, outliers also again.
	suspects, outliers map[mesh.Pair]bool
	// nearness is how near each comes to the best.
	nearness map[mesh.Pair]float64
}

func (m *meshing) rate(size, direction int) ratings {
	limit, best := m.args.limit(), m.best(size)
	j := ratings{make(map[mesh.Pair]bool), make(map[mesh.Pair]bool), make(map[mesh.Pair]float64)}
	again := m.figures(1, size, direction)
	for pair, figure := range m.figures(0, size, direction) {
		j.suspects[pair] = limit.Misses(figure, best)
		if second, has := again[pair]; has {
			figure = second
			j.outliers[pair] = j.suspects[pair] && limit.Misses(figure, best)
		}
		j.nearness[pair] = limit.Nearness(figure, best)
	}
	return j
}

// rated returns the pairs with a rating that is true, in order.
func (m *meshing) rated(is func(ratings, mesh.Pair) bool) []mesh.Pair {
	found := make(map[mesh.Pair]bool)
	for size := range m.sizes() {
		for direction := range m.directions() {
			j := m.rate(size, direction)
			for pair := range m.looks[0] {
				found[pair] = found[pair] || is(j, pair)
			}
		}
	}
	return m.ordered(func(pair mesh.Pair) bool { return found[pair] })
}

// suspects are the pairs that are measured again.
func (m *meshing) suspects() []mesh.Pair {
	return m.rated(func(j ratings, pair mesh.Pair) bool { return j.suspects[pair] })
}

// outliers are the suspects that were no better when they were measured again.
func (m *meshing) outliers() []mesh.Pair {
	return m.rated(func(j ratings, pair mesh.Pair) bool { return j.outliers[pair] })
}

// ordered are the pairs that are chosen, in the order of the rounds.
func (m *meshing) ordered(chosen func(mesh.Pair) bool) []mesh.Pair {
	var list []mesh.Pair
	for _, round := range m.rounds {
		for _, pair := range round {
			if m.looks[0][pair] != nil && chosen(pair) {
				list = append(list, pair)
			}
		}
	}
	return list
}

// again are the rounds of suspects: of an incast those that they were in.
func (m *meshing) again(suspects []mesh.Pair) []mesh.Round {
	if m.args.pattern() != pairsIncast {
		return mesh.Again(len(m.args.Nodes), suspects)
	}
	return slices.DeleteFunc(slices.Clone(m.rounds), func(round mesh.Round) bool {
		return !slices.ContainsFunc(round, func(pair mesh.Pair) bool { return slices.Contains(suspects, pair) })
	})
}

// lost are the pairs that could not be measured, at first or again.
func (m *meshing) lost() []mesh.Pair {
	return m.ordered(func(pair mesh.Pair) bool { return m.why(pair) != nil })
}

// why is the error that has lost a pair; nil for one that was measured.
func (m *meshing) why(pair mesh.Pair) error {
	if again := m.looks[1][pair]; again != nil && again.err != nil {
		return again.err
	}
	return m.looks[0][pair].err
}

// report passes on what was found, and sums it up.
func (m *meshing) report() meshed {
	suspects, outliers, lost := m.suspects(), m.outliers(), m.lost()
	sum := meshed{
		Outliers: len(outliers), Suspects: len(suspects), Lost: len(lost), Rounds: len(m.rounds), Cut: m.cut,
		Worst: 100,
		Pairs: len(m.ordered(func(pair mesh.Pair) bool { return m.why(pair) == nil })),
	}
	blame := mesh.Explain(m.nodes, m.ordered(func(mesh.Pair) bool { return true }), slices.Concat(outliers, lost))
	sum.Blame, sum.Blamed, sum.text = string(blame.Kind), strings.Join(blame.Names, ", "), blame.Text
	var records []*record.Mesh
	for size := range m.sizes() {
		each := m.record(size)
		records = append(records, each)
		for _, pair := range each.Pairs {
			sum.Worst = int(min(float64(sum.Worst), 100*pair.OfBest))
		}
	}
	m.call.Meshed(records, m.measures())
	if len(lost) > 0 {
		m.call.Outcome.Hint = fmt.Sprintf("%s and %s: %v", m.called(lost[0].From), m.called(lost[0].To), m.why(lost[0]))
	}
	return sum
}

// called is a node with the host that it is on.
func (m *meshing) called(node int) string {
	if host := m.nodes[node].Host; host != "" {
		return fmt.Sprintf("%s (%s)", m.nodes[node].Name, host)
	}
	return m.nodes[node].Name
}

// last is the last look at a pair.
func (m *meshing) last(pair mesh.Pair) *look {
	if again := m.looks[1][pair]; again != nil {
		return again
	}
	return m.looks[0][pair]
}

// header is what of the record is known before anything is measured.
func (m *meshing) header() *record.Mesh {
	found := &record.Mesh{
		What: m.what(), How: record.How{Both: m.args.Measure.Bidirectional}, Pattern: m.args.pattern(),
		Rounds: len(m.rounds),
	}
	for _, node := range m.nodes {
		found.Nodes = append(found.Nodes, record.MeshNode{
			Role: node.Name, Host: node.Host, Device: node.Device, Labels: node.Labels,
		})
	}
	return found
}

// record is what was found of one size.
func (m *meshing) record(size int) *record.Mesh {
	limit, found := m.args.limit(), m.header()
	if found.Tolerance, found.Best = limit.Tolerance, m.best(size); limit.Less {
		found.Tolerance = 1 / limit.Tolerance
	}
	var measured, bad []mesh.Pair
	for direction := range m.directions() {
		rated := m.rate(size, direction)
		for _, pair := range m.ordered(func(mesh.Pair) bool { return true }) {
			row, has := m.row(pair, size, direction)
			if !has {
				continue
			}
			if row.Lost == "" {
				// a second look may be cut
				last := cmp.Or(m.last(pair).of(size, direction), m.looks[0][pair].of(size, direction))
				found.Size, found.Depth, found.QPs = last.Size, last.Depth, last.QPs
			}
			row.Suspect, row.Outlier = rated.suspects[pair], rated.outliers[pair]
			if row.Lost == "" {
				row.OfBest = rated.nearness[pair]
			}
			found.Pairs = append(found.Pairs, row)
			ends := pair
			if direction == 1 {
				ends = mesh.Pair{From: pair.To, To: pair.From}
			}
			measured = append(measured, ends)
			if row.Outlier || row.Lost != "" {
				bad = append(bad, ends)
			}
			found.Suspects, found.Outliers, found.Lost = found.Suspects+count(row.Suspect),
				found.Outliers+count(row.Outlier), found.Lost+count(row.Lost != "")
		}
	}
	if blame := mesh.Explain(m.nodes, measured, bad); blame.Kind != mesh.Nothing {
		found.Blame = &record.MeshBlame{Kind: string(blame.Kind), Names: blame.Names, Text: blame.Text}
	}
	return found
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// row is what was found of a pair, of one size and direction; false for nothing, which a threshold has prevented.
func (m *meshing) row(pair mesh.Pair, size, direction int) (row record.MeshPair, has bool) {
	row = record.MeshPair{From: m.args.Nodes[pair.From], To: m.args.Nodes[pair.To], Round: m.looks[0][pair].round + 1}
	if direction == 1 {
		row.From, row.To = row.To, row.From
	}
	if err := m.why(pair); err != nil {
		row.Lost = reason(err)
		return row, true
	}
	first := m.looks[0][pair].of(size, direction)
	if first == nil {
		return row, false
	}
	row.First = first.Figures()
	if again := m.looks[1][pair].of(size, direction); again != nil {
		row.Again = again.Figures()
	}
	return row, true
}

// reason is an error in one line, with the actual value where that adds something.
func reason(err error) string {
	var failure *testbed.Failure
	if errors.As(err, &failure) && failure.Got != "" {
		return failure.What + ": " + failure.Got
	}
	return err.Error()
}
