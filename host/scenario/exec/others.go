package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"rdmarun/host/scenario/meeting"
)

// others are the processes that play the other roles of a case.  Each process walks all steps of the file.  One of a role
// here runs and its results are told to the others; one of a role elsewhere is waited for, and its results become known
// here.  So what expressions see is the same everywhere, every process takes the same way, and a step begins when the one
// before has ended, whoever had it.  Who has the lock of the testbed uses it; several goroutines wait for messages at once.
type others struct {
	meeting *meeting.Meeting
	// quiet are the steps that have brought nothing.
	quiet *quiet
	// names are those of the processes that take part.
	names []string
	// prefix begins the keys of this run of the case, endKeys are those of the ends of the other processes.
	prefix  string
	endKeys []meeting.Key
	// player is the process that plays a role of the run, as the placement has it; where has those of roles that are elsewhere.
	player func(role string) string
	where  map[string]string
	// facts are what the processes of roles elsewhere tell of them.
	facts []roleFacts
	// numbers are those of instances that are elsewhere.
	numbers map[string]int
	// faults are the roles in whose processes faults were made, by the faults' names; "" is all.
	faults map[string]string
	// began is set once all have begun, over once `finally` runs: then nobody waits for anybody.
	began, over bool
	// judge is the process that checks the thresholds, "" for this one.
	judge string
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

func newOthers(config *Config) *others {
	o := &others{
		meeting: config.Meeting, names: config.Others, prefix: meeting.CasePrefix(config.Number), where: make(map[string]string), numbers: make(map[string]int),
		faults: make(map[string]string), ends: make(map[string]ending),
	}
	o.quiet, o.player = newQuiet(o.meeting, o.prefix), o.meeting.Player
	for _, name := range o.names {
		o.endKeys = append(o.endKeys, meeting.Key{From: name, Name: o.key("end", name)})
	}
	o.left, o.leave = context.WithCancelCause(context.Background())
	return o
}

// hear waits for a message of a process under one of several keys.  It fails when one of the processes has ended the case.
func (o *others) hear(ctx context.Context, from string, names ...string) (name string, raw json.RawMessage, err error) {
	return o.hearWith(ctx, []string{from}, from, names...)
}

// hearWith is hear where several processes must be there.
func (o *others) hearWith(ctx context.Context, all []string, from string, names ...string) (name string, raw json.RawMessage, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.left, func() { cancel(context.Cause(o.left)) })()
	keys := make([]meeting.Key, 0, len(names)+len(o.endKeys))
	for _, name := range names {
		keys = append(keys, meeting.Key{From: from, Name: name})
	}
	keys = append(keys, o.endKeys...)
	key, raw, err := o.meeting.AwaitWith(waiting, all, keys...)
	if err == nil && slices.Contains(o.endKeys, key) {
		o.note(key.From, raw)
		err = o.endedBy(key.From)
	}
	return key.Name, raw, err
}

// hearLast waits for a message of a process that may be the last of the case: another that has heard all it waits for may have
// ended the case before this one comes.  came is false when the process itself has ended the case, as each does that waits in vain.
func (o *others) hearLast(ctx context.Context, from, key string) (raw json.RawMessage, came bool, err error) {
	if _, ended := o.endOf(from); ended {
		raw, came = o.meeting.Take(from, key)
		return raw, came, nil
	}
	end := o.key("end", from)
	name, raw, err := o.meeting.Await(ctx, from, key, end)
	if err == nil && name == end {
		o.note(from, raw)
		return nil, false, nil
	}
	return raw, err == nil, err
}

func (o *others) key(what, of string) string { return o.prefix + what + "/" + of }

// await takes a message of a process.
func (o *others) await(ctx context.Context, from, key string, into any) error {
	_, raw, err := o.meeting.Await(ctx, from, key)
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
func (o *others) spend(from string, raw json.RawMessage) error {
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
		return fmt.Errorf("the processes of others tell more than %d MiB in one case, and that of %s %d MiB of it", mostTold>>20, loudest, o.told[loudest]>>20)
	}
	return nil
}
