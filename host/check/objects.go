package check

import (
	"maps"
	"slices"
	"strings"
	"syscall"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
)

// tracked are the kinds of objects that a program makes and destroys, with what they are called.
var tracked = map[string]string{
	"pd": "protection domain", "mr": "memory region", "mw": "memory window", "cq": "completion queue",
	"comp": "completion channel", "qp": "queue pair", "srq": "shared receive queue", "ah": "address handle",
	"id": "rdma_cm_id", "channel": "event channel", "xrcd": "XRC domain",
}

// maxObjects bounds the objects of a process that are followed.
const maxObjects = 1 << 18

// followObjects notes which objects a call has made, and which it has destroyed. What the libraries make within a call
// they destroy themselves.
func (c *Checker) followObjects(p *process, call *trace.Call) {
	if call.Failed() || call.Unfinished {
		if call.Errno == syscall.EBUSY && c.frees[call.Name] != "" {
			name := trace.ObjectOf(call.Arguments, c.frees[call.Name])
			c.report(
				call, finding.DestroyBusy, p.madeAt(name),
				"%s fails with EBUSY: others still use %s", call.Name, name,
			)
		}
		return
	}
	if !call.Nested {
		for _, name := range made(call) {
			delete(p.gone, name)
			if _, known := p.objects[name]; !known && len(p.objects) < maxObjects {
				p.objects[name] = &object{call.Name, call.Site}
			}
		}
	}
	kind := c.frees[call.Name]
	if kind == "" {
		return
	}
	if name := trace.ObjectOf(call.Arguments, kind); name != "" {
		delete(p.objects, name)
		if len(p.gone) < maxObjects {
			p.gone[name] = call
		}
	}
}

// made are the objects that a call has made: its result, or what it has written. An endpoint comes with the event of
// a request to connect, too.
func made(call *trace.Call) (names []string) {
	name, isCast := trace.Name(call.Result), strings.HasPrefix(call.Name, "ibv_qp_to_")
	if tracked[trace.KindOf(name)] != "" && !isCast {
		names = append(names, name)
	}
	switch call.Name {
	case "rdma_create_id", "rdma_create_ep", "rdma_get_request", "rdma_create_qp", "rdma_create_qp_ex",
		"rdma_create_srq", "rdma_create_srq_ex":
	case "rdma_get_cm_event":
		if trace.WordOf(call.Results, "event") != "CONNECT_REQUEST" {
			return names
		}
	default:
		return names
	}
	for _, each := range call.Results {
		if name := trace.Name(each.Value); each.Name != "listen_id" && tracked[trace.KindOf(name)] != "" {
			names = append(names, name)
		}
	}
	return names
}

// madeAt is where an object was made.
func (p *process) madeAt(name string) []Place {
	if object := p.objects[name]; object != nil {
		return []Place{{object.call + " of " + name, object.site}}
	}
	return nil
}

// endOf is where an object was destroyed.
func (p *process) endOf(name string) (site trace.Site) {
	if end := p.gone[name]; end != nil {
		site = end.Site
	}
	return site
}

// usedAfterDestroy checks that a call has no object that was destroyed.
func (c *Checker) usedAfterDestroy(p *process, call *trace.Call) {
	for _, each := range call.Arguments {
		c.usesDestroyed(p, call, trace.Name(each.Value))
	}
}

func (c *Checker) usesDestroyed(p *process, call *trace.Call, name string) {
	end := p.gone[name]
	if end == nil || call.Start < end.End {
		return // another thread was in the call already
	}
	c.report(
		call, finding.UsedAfterDestroy, []Place{{end.Name, end.Site}},
		"%s has the %s %s, which was destroyed", call.Name, tracked[trace.KindOf(name)], name,
	)
}

// objectsLeft reports what a process has not destroyed. What a destroyed one has taken along is not left: the queue
// pair of an endpoint of rdma_create_ep.
func (c *Checker) objectsLeft(pid int, p *process) {
	for _, name := range slices.Sorted(maps.Keys(p.objects)) {
		object := p.objects[name]
		c.reportAt(
			pid, object.call, object.site, finding.ObjectLeft, nil,
			"the %s %s was not destroyed", tracked[trace.KindOf(name)], name,
		)
	}
}

// forkInit follows ibv_fork_init.
func (c *Checker) forkInit(p *process, call *trace.Call) { p.forkSafe = p.forkSafe || !call.Failed() }

// fork checks that a process that forks has no registered memory, or has prepared for it.
func (c *Checker) fork(p *process, call *trace.Call) {
	if p.forkSafe || len(p.regions) == 0 {
		return
	}
	name := slices.Min(slices.Collect(maps.Keys(p.regions)))
	c.report(
		call, finding.ForkUnsafe, []Place{p.regions[name].registration()},
		"the process forks while it has %d memory regions, and has not called ibv_fork_init", len(p.regions),
	)
}
