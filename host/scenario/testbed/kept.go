package testbed

import (
	"maps"
	"slices"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// Kept is what one case leaves to the next: all that lived when it was noted.  A case that has changed it so that
// another would not find it as it was keeps nothing (Intact).
type Kept struct {
	frees  map[*free]bool
	roles  map[*Role]*keptRole
	owners map[any]*Role
	// queues are those that receives are posted to: queue pairs and shared queues.
	queues map[any]bool
}

// keptRole is what is kept of a role.
type keptRole struct {
	device     *rdmacore.Device
	executable <-chan struct{} // of a guest or a program that runs, closed when it has ended; nil for none
	living     []*Endpoint
	endpoints  map[string]*Endpoint
	objects    map[objectName]named
	states     map[*Endpoint]keptEndpoint
	buffers    map[*Buffer]keptBuffer
}

// keptEndpoint is an endpoint with the state of its queue pair; that is 0 without one.
type keptEndpoint struct {
	endpoint Endpoint
	state    rdmacore.QPState
}

// keptBuffer is a registration, and what the memory held.
type keptBuffer struct {
	mr     *rdmacore.MR
	view   BufferView
	rights rdmacore.Access
	bytes  []byte
}

// maxKept bounds the memory of buffers that is kept: with more of it nothing is.
const maxKept = 256 << 20

// Keep notes what lives now; nil when it is too much.
func (t *Testbed) Keep() *Kept {
	k := &Kept{
		frees: make(map[*free]bool), roles: make(map[*Role]*keptRole), owners: t.owners.all(),
		queues: make(map[any]bool),
	}
	bytes := 0
	for _, entry := range t.frees {
		k.frees[entry] = !entry.done
	}
	for _, r := range t.roles {
		role := &keptRole{
			device: r.device, living: slices.Clone(r.living), endpoints: maps.Clone(r.endpoints),
			objects: maps.Clone(r.objects),
			states:  make(map[*Endpoint]keptEndpoint), buffers: make(map[*Buffer]keptBuffer),
		}
		if p := r.executable(); running(p) {
			role.executable = p.done()
		}
		for _, endpoint := range r.living {
			role.states[endpoint] = keptEndpoint{*endpoint, endpoint.state()}
			k.queues[endpoint.receiveQueue()] = true
		}
		for _, b := range r.buffers {
			if bytes += b.size; bytes > maxKept {
				return nil
			}
			role.buffers[b] = keptBuffer{b.mr, b.view, b.rights, slices.Clone(b.Bytes())}
		}
		k.roles[r] = role
	}
	t.receives = make(map[any]int)
	return k
}

// receiveQueue is what receives of an endpoint are posted to: a shared queue, or its queue pair; nil without one.
func (e *Endpoint) receiveQueue() any {
	if shared := e.id.SRQ(); shared != nil {
		return shared
	}
	qp := e.id.QP()
	if qp == nil {
		return nil
	}
	if shared := qp.InitAttr().SRQ; shared != nil {
		return shared
	}
	return qp
}

// ReceivesPosted counts receives that were posted to a queue pair or to a shared queue.
func (t *Testbed) ReceivesPosted(queue any, count int) {
	if t.receives != nil {
		t.receives[queue] += count
	}
}

// ReceivesTaken counts receives among completions of an endpoint's queue, which may be of others of its role, too.
// Those that failed have changed the state of their queue pair.
func (e *Endpoint) ReceivesTaken(completions []rdmacore.WC) {
	t := e.Role.testbed
	if t.receives == nil {
		return
	}
	for i := range completions {
		wc := &completions[i]
		if wc.Status != rdmacore.WCSuccess || wc.Opcode&rdmacore.WCRecv == 0 {
			continue
		}
		for _, each := range e.Role.living {
			if each.id.QP().Num() == wc.QPNum {
				t.receives[each.receiveQueue()]--
				break
			}
		}
	}
}

// state is that of the endpoint's queue pair, 0 without one.
func (e *Endpoint) state() rdmacore.QPState {
	if qp := e.id.QP(); qp != nil {
		if attr, err := qp.Query(); err == nil {
			return attr.State
		}
	}
	return 0
}

// Intact reports whether all that is kept is unchanged. Nothing of it was freed, no role, guest or program has ended,
// and no device was removed. Endpoints, registrations and the receives that wait for messages are what they were.
func (t *Testbed) Intact(k *Kept) bool {
	for queue, count := range t.receives {
		if count != 0 && k.queues[queue] {
			return false
		}
	}
	for entry, lived := range k.frees {
		if entry.done == lived {
			return false
		}
	}
	for r, kept := range k.roles {
		if r.dead || r.holding || len(r.held) > 0 || r.device != kept.device ||
			kept.executable != nil && (r.executable().done() != kept.executable || !running(r.executable())) {
			return false
		}
		for endpoint, was := range kept.states {
			if endpoint.destroyed || endpoint.Disconnected != was.endpoint.Disconnected ||
				endpoint.state() != was.state {
				return false
			}
		}
		for b, was := range kept.buffers {
			if b.mr != was.mr || b.view != was.view || b.rights != was.rights {
				return false
			}
		}
	}
	return true
}

// Executables reports whether guests or programs go on: what they make and free meanwhile is theirs.
func (k *Kept) Executables() bool {
	for _, kept := range k.roles {
		if kept.executable != nil {
			return true
		}
	}
	return false
}

// Release frees all that is not kept, and returns what could not be freed.
func (t *Testbed) Release(k *Kept) []error {
	t.Leftovers() // also connections that unread requests brought
	var own, rest []*free
	for _, entry := range t.frees {
		if _, kept := k.frees[entry]; kept {
			rest = append(rest, entry)
		} else {
			own = append(own, entry)
		}
	}
	failures := freeAll(own)
	t.frees = rest
	for r, kept := range k.roles {
		r.living, r.endpoints, r.objects = slices.Clone(kept.living), maps.Clone(kept.endpoints),
			maps.Clone(kept.objects)
	}
	t.owners.restore(k.owners)
	return failures
}

// Resume begins another case on what is kept: buffers hold what they held, and nothing is counted yet.
func (t *Testbed) Resume(k *Kept) {
	t.Leftovers() // those of the case before
	clear(t.receives)
	t.traffic, t.faultCounts = make(map[rdmacore.Opcode]*record.Traffic), make(map[string]uint64)
	for r, kept := range k.roles {
		r.began = r.count()
		for endpoint, was := range kept.states {
			endpoint.IgnoreLeftovers, endpoint.Received, endpoint.Unsignaled = was.endpoint.IgnoreLeftovers,
				was.endpoint.Received, was.endpoint.Unsignaled
			endpoint.Datagrams, endpoint.handle = was.endpoint.Datagrams, was.endpoint.handle
		}
		for b, was := range kept.buffers {
			copy(b.Bytes(), was.bytes)
		}
	}
}

func (o *owners) all() map[any]*Role {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.roles)
}

func (o *owners) restore(roles map[any]*Role) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.roles = maps.Clone(roles)
}
