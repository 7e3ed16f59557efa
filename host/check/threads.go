package check

import (
	"time"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
)

// singleThreaded is an object that the program has promised to use by one thread at a time.
type singleThreaded struct {
	what   string      // why
	source *trace.Call // the promise
	last   use
}

// use is a call with such an object.
type use struct {
	call   string
	thread int
	end    time.Duration
	site   trace.Site
}

// parentDomain follows ibv_alloc_parent_domain. Regions of the domain and of its parent can be used with both. What is
// made in a domain with a thread domain is used by one thread at a time.
func (c *Checker) parentDomain(p *process, call *trace.Call) {
	name := trace.Name(call.Result)
	p.parents[name] = trace.ObjectOf(call.Arguments, "pd")
	if td := trace.ObjectOf(call.Arguments, "td"); td != "" && !call.Failed() {
		p.threads[name] = &singleThreaded{what: "it is of " + td, source: call}
	}
}

// use checks that no other thread is in a call with the same object, or with another one of its domain. The calls of a
// process come in the order of their ends.
func (c *Checker) use(object *singleThreaded, name string, call *trace.Call) {
	if object == nil || call.Unfinished {
		return
	}
	last := object.last
	object.last = use{call.Name, call.Thread, call.End, call.Site}
	if last.call == "" || last.thread == call.Thread || last.end <= call.Start {
		return
	}
	c.report(
		call, finding.SingleThreaded,
		[]Place{{"the other " + last.call, last.site}, {object.source.Name, object.source.Site}},
		"two threads use %s at the same time, and %s", name, object.what,
	)
}

// inSignalHandler checks that no handler of an asynchronous signal calls the libraries, which take locks.
func (c *Checker) inSignalHandler(call *trace.Call) {
	if call.InHandler && call.Group != trace.BufferGroup {
		c.report(call, finding.InSignalHandler, nil, "a signal handler calls %s", call.Name)
	}
}
