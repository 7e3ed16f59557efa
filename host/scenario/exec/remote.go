package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// remote has several processes play the roles of a case.  Each walks all steps of the file.  One of a role here runs
// and its outcome is told to the others; one of a role elsewhere is waited for, and its outcome becomes known here.  So
// what expressions see is the same everywhere, every process takes the same way, and a step begins when the one before
// has ended, whoever had it.  Who has the lock of the testbed uses it; several goroutines wait for messages at once.
type remote struct {
	mailbox Mailbox
	// quiet are the steps that have brought nothing.
	quiet *quiet
	// names are those of the processes that take part.
	names []string
	// endKeys are those of the ends of the other processes.
	endKeys []meeting.Key
	// player is the process that plays a role of the run, as the placement has it.
	player func(role string) string
	// began is set once all have begun.
	began bool
	// left ends all waiting for steps, when a process has ended the case: what it had to say it has said.
	left  context.Context
	leave context.CancelCauseFunc

	mu sync.Mutex
	// told is how many bytes each other has told that are kept to the end of the case.
	told map[string]int
	// ends are the ends that have been told already.
	ends map[string]ending
}

// meetTime bounds the wait for the others at the beginning of a case and at its end, beyond what the case may take.
const meetTime = 30 * time.Second

func newRemote(config *Config) *remote {
	o := &remote{
		mailbox: config.Mailbox, player: config.Player, names: config.Others, quiet: newQuiet(config.Mailbox),
		ends: make(map[string]ending),
	}
	for _, name := range o.names {
		o.endKeys = append(o.endKeys, meeting.Key{From: name, Name: key("end", name)})
	}
	o.left, o.leave = context.WithCancelCause(context.Background())
	return o
}

func key(what, of string) string { return what + "/" + of }

// own is the key of what this process says once of the whole case.
func (o *remote) own(what string) string { return key(what, o.mailbox.Name()) }

// hear waits for a message of a process under one of several keys, while some others must be there, too.  It fails when
// one of the processes has ended the case.
func (o *remote) hear(
	ctx context.Context, from string, also []string, names ...string,
) (name string, raw json.RawMessage, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.left, func() { cancel(context.Cause(o.left)) })()
	keys := make([]meeting.Key, 0, len(names)+len(o.endKeys))
	for _, name := range names {
		keys = append(keys, meeting.Key{From: from, Name: name})
	}
	keys = append(keys, o.endKeys...)
	key, raw, err := o.mailbox.AwaitWith(waiting, append([]string{from}, also...), keys...)
	if err == nil && slices.Contains(o.endKeys, key) {
		o.note(key.From, raw)
		err = o.endedBy(key.From)
	}
	return key.Name, raw, err
}

// hearLast waits for a message of a process that may be the last of the case: another that has heard all it waits for
// may have ended the case before this one comes.  came is false when the process itself has ended the case, as each
// does that waits in vain.
func (o *remote) hearLast(ctx context.Context, from, what string) (raw json.RawMessage, came bool, err error) {
	if _, ended := o.endOf(from); ended {
		raw, came = o.mailbox.Take(from, what)
		return raw, came, nil
	}
	end := key("end", from)
	name, raw, err := o.mailbox.Await(ctx, from, what, end)
	if err == nil && name == end {
		o.note(from, raw)
		return nil, false, nil
	}
	return raw, err == nil, err
}

// receive takes a message of a process.
func (o *remote) receive(ctx context.Context, from, key string, into any) error {
	_, raw, err := o.mailbox.Await(ctx, from, key)
	if err == nil {
		err = o.spend(from, raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}

// mostTold bounds what the others tell that is kept to the end of the case, and is in its records.
const mostTold = 256 << 20

// spend counts what is kept of a message.  Where there is no room for it, the process is named that has taken most.
func (o *remote) spend(from string, raw json.RawMessage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = make(map[string]int)
	}
	o.told[from] += len(raw)
	all, loudest := 0, from
	for name, told := range o.told {
		if all += told; told > o.told[loudest] {
			loudest = name
		}
	}
	if all > mostTold {
		return fmt.Errorf(
			"the processes of others tell more than %d MiB in one case, and that of %s %d MiB of it", mostTold>>20,
			loudest, o.told[loudest]>>20,
		)
	}
	return nil
}

// step is work of the process that has its role.  A step without a role, and a mesh, every process has: nothing is
// told of it.
func (o *remote) step(
	ctx context.Context, r *caseRun, step *compile.Step, call *compile.Call,
) (divided bool, err error) {
	if r.turns.whole {
		return false, nil
	}
	if ofAll(call) {
		r.turns.next()
		defer o.mailbox.Forget(r.stepKey() + "/")
		return true, r.everywhere(ctx, step)
	}
	role, err := r.playedBy(call)
	switch {
	case err != nil:
		return true, r.failed(step, role, call.Verb.Name, err)
	case role == "":
		return true, r.everywhere(ctx, step)
	}
	r.turns.next()
	_, err = o.do(ctx, &remoteCall{task{
		remote: o, run: r, step: step, role: role, action: call.Verb.Name, owner: r.roster.where[role],
		leaves: call.Verb.Divides,
	}, call})
	return true, err
}

// remoteCall is a call of a role.
type remoteCall struct {
	task
	call *compile.Call
}

func (c *remoteCall) here(ctx context.Context) error { return c.run.decorated(ctx, c.step) }
func (c *remoteCall) adds(*outcome, error)           {}
func (c *remoteCall) count(int) int                  { return 1 }
func (c *remoteCall) heardUnder(n int) string        { return c.run.measuredKey(n) }

func (c *remoteCall) heard(raw json.RawMessage) error {
	return c.remote.takeMeasured(c.run, c.step, c.call, c.owner, raw)
}

func (c *remoteCall) half() func(context.Context) {
	return c.remote.half(c.run, c.step, c.call, c.owner)
}

// binds tells of the name of the call's result, as this process computes it.
func (c *remoteCall) binds(role, name string, index int) bool {
	as, owner := c.call.As, c.role
	if c.call.Role == nil {
		owner = "" // its result is of none
	}
	if as.Word == "" || name != as.Word || role != owner {
		return false
	}
	_, own, err := as.Get(c.run.env)
	return err == nil && own == index
}

// share gives a call the processes with other parts of its step.
func (o *remote) share(r *caseRun, running *verb.Call, call *compile.Call) {
	if call.Verb.Divides {
		running.Counterpart, running.Meet = o.counterpart(r), o.meet(r, call)
	}
	if call.Verb.Measures {
		running.Company = &company{r, o}
	}
}

// decide hears what the process that judges decides, or tells the others what this one does: each has its own clock,
// and perhaps another earlier run.
func (o *remote) decide(
	ctx context.Context, r *caseRun, key string, number int, own func() any,
) (decided json.RawMessage, err error) {
	if err := o.quiet.flush(); err != nil {
		return nil, err
	}
	key = fmt.Sprint(key, number)
	if r.roster.judge == "" {
		return nil, o.mailbox.Tell(key, own())
	}
	r.outside(func() { _, decided, err = o.hear(ctx, r.roster.judge, nil, key) })
	return decided, err
}

// turns number the steps of a branch, in each process the same.
type turns struct {
	prefix string
	count  int
	// key is the running step's, once somebody has asked for it.
	key string
	// quiet is what is known of steps of other processes that have brought nothing.
	quiet map[string]*quietOf
	room  []byte // for a key that is only looked for
	// whole is set in a loop that is one step of all.
	whole bool
	// telling is set while a step of this process runs of which the others are told; of it are what follows.
	telling bool
	// told is how much it has told of what it measures, untold why something of that could not be told.
	told   int
	untold error
	// bound are its results, ignored whose peers' leftovers it wants to be ignored.
	bound   []boundResult
	ignored []testbed.Ends
}

// next begins a step.
func (t *turns) next() {
	t.count++
	t.key = ""
}

// note keeps a result of the running step for the others; of a loop that is one step, the last under each name.
func (t *turns) note(result boundResult) {
	if !t.telling {
		return
	}
	if t.whole {
		t.bound = slices.DeleteFunc(t.bound, func(b boundResult) bool {
			return b.Role == result.Role && b.Name == result.Name
		})
	}
	t.bound = append(t.bound, result)
}

// ignore keeps the ends of a connection for the others, whose leftovers are ignored.
func (t *turns) ignore(ends testbed.Ends) {
	if t.telling && ends.Peer.IsValid() && !slices.Contains(t.ignored, ends) {
		t.ignored = append(t.ignored, ends)
	}
}

// appendKey appends the key of the running step.
func (t *turns) appendKey(to []byte) []byte {
	return strconv.AppendInt(append(append(to, "step/"...), t.prefix...), int64(t.count), 10)
}

// stepKey is the key of the running step.
func (r *caseRun) stepKey() string {
	if r.turns.key == "" {
		r.turns.key = string(r.turns.appendKey(nil))
	}
	return r.turns.key
}

// branch are the turns of a branch of a parallel step, of which the step itself is one.
func (t *turns) branch(i int) turns {
	return turns{prefix: fmt.Sprintf("%s%d.%d/", t.prefix, t.count, i)}
}
