// Package check finds mistakes in how a program uses RDMA, from the calls that package trace reads of it.
//
// A Checker follows the objects of each process: regions with their keys, queue pairs with the requests that are
// outstanding, completion queues, endpoints. The kinds of mistakes are in package finding.
//
//   - checker.go: Checker, which hands each call to what follows it
//   - state.go: what is known of a process
//   - fields.go: reading arguments and results of calls
//   - memory.go: regions, and the memory of requests, also when it is changed or given back
//   - spans.go: which outstanding requests write to some memory
//   - creation.go: queue pairs and completion queues, their states and their events
//   - queues.go: posts and completions
//   - connections.go: endpoints, their events and their parameters
//   - threads.go: what two threads use at the same time
//   - objects.go: objects that are left, used after their end, or not destroyed; forks
//   - report.go, sarif.go: findings as text, as lines of JSON and in SARIF
//
// The library records which memory the program changes while it is sent, and which it gives back. A Checker knows
// nothing else of what a program does between its calls, such as when it reads a buffer or looks at a status.
package check

import (
	"fmt"
	"maps"
	"slices"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
	"rdmarun/host/trace/calls"
)

// Bounds of what is kept for the report.
const (
	maxFindings = 1000
	maxMissing  = 16
	maxFormer   = 256
)

// Finding is a mistake at one place of the program.
type Finding struct {
	finding.Kind
	Process int
	// What is the mistake with its objects and numbers.
	What string
	// Call is where it is made, by the function that is called there.
	Call Place
	// Related are other places that belong to it: where an object was made, where the other request was posted.
	Related []Place
	// Count is how often the program has made it.
	Count uint64
}

// Place is a place of the program, and what it does there.
type Place struct {
	What string
	Site trace.Site
}

// key is what makes two findings one: the kind, and the places.
type key struct {
	process int
	kind    string
	site    trace.Site
	other   trace.Site
}

// Checker finds mistakes in the calls of a program and its processes. It is for one goroutine.
type Checker struct {
	kinds     map[string]finding.Kind
	frees     map[string]string // by a call: the kind of object that it destroys
	processes map[int]*process
	former    []former
	known     map[key]*Finding
	order     []*Finding
	dropped   uint64
	missing   []string // about calls that were not seen
}

// NewChecker returns a Checker that has seen no call.
func NewChecker() (*Checker, error) {
	table, err := calls.Load()
	if err != nil {
		return nil, err
	}
	c := &Checker{
		kinds: map[string]finding.Kind{}, frees: map[string]string{}, processes: map[int]*process{},
		known: map[key]*Finding{},
	}
	for _, kind := range finding.Kinds() {
		c.kinds[kind.Name] = kind
	}
	for _, call := range table.Calls {
		for _, value := range call.Values {
			if value.Name == call.Frees {
				c.frees[call.Shown] = value.Type
			}
		}
	}
	return c, nil
}

// Take checks a call. The calls of a process come in the order of their ends.
func (c *Checker) Take(call *trace.Call) {
	p := c.processes[call.Process]
	if p == nil {
		p = newProcess()
		c.processes[call.Process] = p
	}
	switch {
	case call.Note != "":
		if len(c.missing) < maxMissing && !slices.Contains(c.missing, call.Note) {
			c.missing = append(c.missing, call.Note)
		}
		return
	case call.Name == "exit":
		p.killed = call.Killed
		c.exited(call.Process, p)
		return
	case call.Name == "exec":
		c.executed(call.Process, p)
		return
	}
	if call.Queue != "" {
		if !call.Nested {
			c.work(p, call)
		}
		return
	}
	if !call.Nested {
		c.inSignalHandler(call)
		c.usedAfterDestroy(p, call)
	}
	if check := checks[call.Name]; check != nil && !call.Nested {
		check(c, p, call)
	}
	c.followObjects(p, call)
}

// work checks a post or a poll. Its queue is its only object, and it makes none. The trace uses the call again.
func (c *Checker) work(p *process, call *trace.Call) {
	c.inSignalHandler(call)
	c.usesDestroyed(p, call, call.Queue)
	switch call.Name {
	case "ibv_post_send", "ibv_wr_complete":
		c.postSend(p, call)
	case "ibv_post_recv", "ibv_post_srq_recv":
		c.postReceive(p, call)
	case "ibv_poll_cq", "ibv_start_poll":
		c.poll(p, call)
	}
}

// exited forgets a process that has nothing left to report, because a program may start any number of them. Close has
// the others.
func (c *Checker) exited(pid int, p *process) {
	p.endQueues()
	if len(p.objects) == 0 && len(p.unrepeated) == 0 {
		delete(c.processes, pid)
	}
}

// executed is the end of a program of which the process executes another one (execve(2)). Its objects are gone, and the
// names of the next one's begin again.
func (c *Checker) executed(pid int, p *process) {
	p.endQueues()
	delete(c.processes, pid)
	if len(p.objects)+len(p.unrepeated) > 0 && len(c.former) < maxFormer {
		c.former = append(c.former, former{pid, p})
	}
}

// former is a program that has executed another one.
type former struct {
	pid int
	*process
}

// checks are the checks of calls by name, but for posts and polls.
var checks = map[string]func(*Checker, *process, *trace.Call){
	"ibv_reg_mr":              (*Checker).register,
	"ibv_reg_mr_iova":         (*Checker).register,
	"ibv_reg_mr_iova2":        (*Checker).register,
	"ibv_reg_dmabuf_mr":       (*Checker).register,
	"ibv_reg_dm_mr":           (*Checker).register,
	"ibv_alloc_null_mr":       (*Checker).nullRegion,
	"ibv_import_mr":           (*Checker).importRegion,
	"ibv_rereg_mr":            (*Checker).reregister,
	"ibv_dereg_mr":            (*Checker).deregister,
	"memory_changed":          (*Checker).memoryChanged,
	"free":                    (*Checker).memoryGone,
	"realloc":                 (*Checker).memoryGone,
	"munmap":                  (*Checker).memoryGone,
	"mprotect":                (*Checker).memoryGone,
	"ibv_import_pd":           (*Checker).importDomain,
	"ibv_alloc_parent_domain": (*Checker).parentDomain,
	"ibv_create_cq":           (*Checker).createCQ,
	"ibv_create_cq_ex":        (*Checker).createCQ,
	"ibv_resize_cq":           (*Checker).resizeCQ,
	"ibv_create_qp":           (*Checker).createQP,
	"ibv_create_qp_ex":        (*Checker).createQP,
	"rdma_create_qp":          (*Checker).createQP,
	"rdma_create_qp_ex":       (*Checker).createQP,
	"rdma_create_ep":          (*Checker).createQP,
	"ibv_modify_qp":           (*Checker).modifyQP,
	"ibv_req_notify_cq":       (*Checker).arm,
	"ibv_get_cq_event":        (*Checker).cqEvent,
	"ibv_ack_cq_events":       (*Checker).ackCQEvents,
	"ibv_destroy_cq":          (*Checker).destroyCQ,
	"ibv_destroy_qp":          (*Checker).destroyQP,
	"rdma_destroy_qp":         (*Checker).destroyQP,
	"rdma_create_id":          (*Checker).createID,
	"rdma_get_cm_event":       (*Checker).event,
	"rdma_ack_cm_event":       (*Checker).ackEvent,
	"rdma_connect":            (*Checker).connect,
	"rdma_accept":             (*Checker).accept,
	"rdma_reject":             (*Checker).reject,
	"rdma_disconnect":         (*Checker).disconnect,
	"rdma_get_request":        (*Checker).getRequest,
	"rdma_destroy_id":         (*Checker).destroyID,
	"rdma_destroy_ep":         (*Checker).destroyID,
	"ibv_fork_init":           (*Checker).forkInit,
	"fork":                    (*Checker).fork,
	"ibv_create_srq":          (*Checker).createSRQ,
	"ibv_create_srq_ex":       (*Checker).createSRQ,
	"rdma_create_srq":         (*Checker).createSRQ,
	"rdma_create_srq_ex":      (*Checker).createSRQ,
	"ibv_destroy_srq":         (*Checker).destroySRQ,
	"rdma_destroy_srq":        (*Checker).destroySRQ,
}

// report adds a finding, or counts one that is known. A program may repeat a mistake with each message, so the text is
// formatted only for a new one.
func (c *Checker) report(call *trace.Call, kind string, related []Place, format string, args ...any) {
	c.reportAt(call.Process, call.Name, call.Site, kind, related, format, args...)
}

func (c *Checker) reportAt(
	pid int, name string, site trace.Site, kind string, related []Place, format string, args ...any,
) {
	k := key{process: pid, kind: kind, site: site}
	if len(related) > 0 {
		k.other = related[0].Site
	}
	if c.isRepeated(k) {
		return
	}
	if len(c.order) >= maxFindings {
		c.dropped++
		return
	}
	found := &Finding{
		Kind: c.kinds[kind], Process: pid, What: fmt.Sprintf(format, args...), Call: Place{name, site},
		Related: related, Count: 1,
	}
	c.known[k] = found
	c.order = append(c.order, found)
}

// isRepeated counts a finding that is known. Benchmarks repeat one with each message, which has no need of its text.
func (c *Checker) isRepeated(k key) bool {
	known := c.known[k]
	if known != nil {
		known.Count++
	}
	return known != nil
}

// Ending is how a process has ended.
type Ending int

const (
	// Succeeded is for an exit with 0.
	Succeeded Ending = iota
	// Failed is for another exit: the program has noticed that something went wrong.
	Failed
	// Killed is for a signal, after which a process cannot destroy its objects.
	Killed
	// Unknown is for a process of which another one gets the status. The trace knows whether a signal has ended it.
	Unknown
)

// Close checks what is left, and returns the findings: errors first, then in the order in which they were found.
// Findings of the suppressed kinds are left out.
func (c *Checker) Close(suppressed []string, ending func(pid int) Ending) []Finding {
	for _, each := range c.former {
		c.postsIgnored(each.pid, each.process)
		c.removalsIgnored(each.process)
		c.objectsLeft(each.pid, each.process)
	}
	for _, pid := range slices.Sorted(maps.Keys(c.processes)) {
		p, end := c.processes[pid], ending(pid)
		switch {
		case end == Unknown && p.killed:
			end = Killed
		case end == Unknown:
			end = Succeeded
		}
		if end == Succeeded {
			c.postsIgnored(pid, p)
		}
		if end != Killed {
			c.removalsIgnored(p)
			c.objectsLeft(pid, p)
		}
	}
	slices.SortStableFunc(c.order, func(a, b *Finding) int { return int(a.Level) - int(b.Level) })
	found := make([]Finding, 0, len(c.order))
	for _, each := range c.order {
		if len(c.missing) > 0 && each.Name == finding.UnknownKey {
			continue // the region may be of a call that is missing
		}
		if !slices.Contains(suppressed, each.Name) {
			found = append(found, *each)
		}
	}
	return found
}

// Missing are sentences about calls that were not seen, so that mistakes may not be found.
func (c *Checker) Missing() []string {
	if c.dropped > 0 {
		return append(slices.Clone(c.missing), fmt.Sprintf("%d further findings are not shown", c.dropped))
	}
	return c.missing
}
