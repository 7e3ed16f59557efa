package exec

import (
	"fmt"
	"slices"
	"strconv"

	"rdmarun/host/scenario/testbed"
)

// turns number the steps of a branch, in each process the same.
type turns struct {
	prefix string
	count  int
	// key is the running step's, once somebody has asked for it; told is how much it has told of what it measures.
	key  string
	told int
	// quiet is the key of what a process says of steps that have brought nothing, of is that process.
	quiet, of string
	room      []byte // for a key that is only looked for
	// untold is why something of it could not be told.
	untold error
	// bound are the results of the running step, ignored whose peers' leftovers it wants to be ignored.
	bound   []boundResult
	ignored []testbed.Ends
	// whole is set in a loop that is one step of all.
	whole bool
}

// begin forgets what an earlier step of this process has brought.
func (t *turns) begin() { t.bound, t.ignored, t.told, t.untold = nil, nil, 0, nil }

// next begins a step.
func (t *turns) next() {
	t.count++
	t.key = ""
}

// note keeps a result of the running step for the others; of a loop that is one step, the last under each name.
func (t *turns) note(result boundResult) {
	if t.whole {
		t.bound = slices.DeleteFunc(t.bound, func(b boundResult) bool { return b.Role == result.Role && b.Name == result.Name })
	}
	t.bound = append(t.bound, result)
}

// appendKey appends the key of the running step.
func (r *caseRun) appendKey(to []byte) []byte {
	to = append(append(append(to, r.others.prefix...), "step/"...), r.turns.prefix...)
	return strconv.AppendInt(to, int64(r.turns.count), 10)
}

// stepKey is the key of the running step.
func (r *caseRun) stepKey() string {
	if r.turns.key == "" {
		r.turns.key = string(r.appendKey(nil))
	}
	return r.turns.key
}

// quietKey is that of the messages of a process about steps that have brought nothing.
func (r *caseRun) quietKey(process string) string {
	if r.turns.of != process || r.turns.quiet == "" {
		r.turns.quiet, r.turns.of = r.others.quiet.key(process, r.turns.prefix), process
	}
	return r.turns.quiet
}

// wasQuiet tells whether it is known of the running step, of another process, that it has brought nothing.
func (r *caseRun) wasQuiet(process string) bool {
	o, key := r.others, r.quietKey(process)
	if !o.quiet.known(key, r.turns.count) {
		raw, came := o.meeting.Take(process, key)
		if !came || o.quiet.note(key, raw) != nil || !o.quiet.known(key, r.turns.count) {
			return false
		}
	}
	// What a step has brought was told before it is known of one after it that it has brought nothing.
	r.turns.room = r.appendKey(r.turns.room[:0])
	return !o.meeting.HasCome(process, r.turns.room)
}

// branch are the turns of a branch of a parallel step, of which the step itself is one.
func (t *turns) branch(i int) turns {
	return turns{prefix: fmt.Sprintf("%s%d.%d/", t.prefix, t.count, i)}
}
