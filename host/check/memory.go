package check

import (
	"math"
	"slices"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
)

// manyRegistrations of the same memory are worth a hint.
const manyRegistrations = 64

// maxSpans bounds the ranges with counted registrations.
const maxSpans = 1 << 16

// register follows ibv_reg_mr and its variants.
func (c *Checker) register(p *process, call *trace.Call) {
	name := trace.Name(call.Result)
	if call.Failed() || trace.KindOf(name) != "mr" {
		return
	}
	memory := span{trace.NumberOf(call.Arguments, "addr"), trace.NumberOf(call.Arguments, "length")}
	var own span // none of the program: device memory, or a dma-buf
	if trace.ValueOf(call.Arguments, "addr") != nil {
		own = memory
		c.registeredAgain(p, call, memory)
	}
	if trace.ValueOf(call.Arguments, "iova") != nil {
		memory.address = trace.NumberOf(call.Arguments, "iova")
	}
	access := trace.WordOf(call.Arguments, "access")
	if trace.HasFlag(access, "ZERO_BASED") {
		memory.address = 0
	}
	r := &region{
		name: name, pd: trace.ObjectOf(call.Arguments, "pd"), span: memory, memory: own,
		writable: trace.HasFlag(access, "LOCAL_WRITE"),
		site:     call.Site,
	}
	p.addRegion(call, r)
}

// addRegion adds a region with the key that a call gave it.
func (p *process) addRegion(call *trace.Call, r *region) {
	p.regions[r.name] = r
	p.keys[uint32(trace.NumberOf(call.Results, "lkey"))] = r
}

func (c *Checker) registeredAgain(p *process, call *trace.Call, memory span) {
	if len(p.registered) < maxSpans || p.registered[memory] > 0 {
		p.registered[memory]++
	}
	if p.registered[memory] == manyRegistrations {
		c.report(
			call, finding.RegisteredAgain, nil,
			"the %d bytes at %#x are registered %d times", memory.length, memory.address, manyRegistrations,
		)
	}
}

// everywhere is all memory.
var everywhere = span{0, math.MaxUint64}

// nullRegion follows ibv_alloc_null_mr. The region has all addresses, and discards what is written to it.
func (c *Checker) nullRegion(p *process, call *trace.Call) {
	if name := trace.Name(call.Result); name != "" && !call.Failed() {
		p.addRegion(call, &region{
			name: name, pd: trace.ObjectOf(call.Arguments, "pd"), span: everywhere, writable: true, discards: true,
			site: call.Site,
		})
	}
}

// importRegion follows ibv_import_mr. The range and the access flags of the region are not known.
func (c *Checker) importRegion(p *process, call *trace.Call) {
	if name := trace.Name(call.Result); name != "" && !call.Failed() {
		p.addRegion(call, &region{name: name, span: everywhere, writable: true, site: call.Site})
	}
}

// reregister follows ibv_rereg_mr, which changes what its flags name, and the keys. Requests that are outstanding refer
// to the region as it was.
func (c *Checker) reregister(p *process, call *trace.Call) {
	c.inUse(p, call, "changed")
	was := p.regions[trace.ObjectOf(call.Arguments, "mr")]
	if was == nil || call.Failed() {
		return
	}
	r := *was
	r.outstanding = 0
	flags := trace.WordOf(call.Arguments, "flags")
	if trace.HasFlag(flags, "TRANSLATION") {
		r.memory = span{trace.NumberOf(call.Arguments, "addr"), trace.NumberOf(call.Arguments, "length")}
		r.span = r.memory
	}
	if trace.HasFlag(flags, "PD") {
		r.pd = trace.ObjectOf(call.Arguments, "pd")
	}
	if trace.HasFlag(flags, "ACCESS") {
		r.writable = trace.HasFlag(trace.WordOf(call.Arguments, "access"), "LOCAL_WRITE")
	}
	for key, each := range p.keys {
		if each == was {
			delete(p.keys, key)
		}
	}
	p.addRegion(call, &r)
}

func (c *Checker) deregister(p *process, call *trace.Call) {
	c.inUse(p, call, "deregistered")
	if r := p.regions[trace.ObjectOf(call.Arguments, "mr")]; r != nil && !call.Failed() {
		r.gone = true
		delete(p.regions, r.name)
	}
}

// inUse checks that no outstanding request uses a region that is deregistered. Requests of a queue pair that has failed
// are flushed, and read and write no memory. Of requests that are not signaled it is not known whether they are
// complete.
func (c *Checker) inUse(p *process, call *trace.Call, what string) {
	r := p.regions[trace.ObjectOf(call.Arguments, "mr")]
	if r == nil {
		return
	}
	if qp, each := p.userOf(r, r.span); qp != nil {
		c.report(
			call, finding.RegionInUse, []Place{{each.call, each.site}, r.registration()},
			"%s is %s while %s of %s that uses it is outstanding (wr_id %#x)",
			r.name, what, each.name(), qp.name, each.id,
		)
	}
}

// userOf is an outstanding request that uses that memory of a region, and its queue pair; nil: there is none.
func (p *process) userOf(r *region, memory span) (*queuePair, *request) {
	if r.outstanding == 0 {
		return nil, nil
	}
	for _, qp := range p.queuePairs {
		if !qp.connected || qp.failed != nil {
			continue
		}
		for _, q := range []*queue{qp.send, qp.receive} {
			for _, each := range q.posted {
				if each.signaled && each.uses(r, memory) {
					return qp, each
				}
			}
		}
	}
	return nil, nil
}

func (r *request) uses(region *region, memory span) bool {
	return slices.ContainsFunc(
		r.segments, func(s segment) bool { return s.region == region && s.overlaps(memory) },
	)
}

// protection is the protection domain of a domain, which may be a parent domain of it; "" if it is not known.
func (p *process) protection(domain string) string {
	if pd, isOther := p.parents[domain]; isOther {
		return pd
	}
	return domain
}

// haveOtherDomains reports whether two domains are not of one protection domain. Domains that are not known do not
// count.
func (p *process) haveOtherDomains(a, b string) bool {
	a, b = p.protection(a), p.protection(b)
	return a != "" && b != "" && a != b
}

// importDomain follows ibv_import_pd. The domain has a name here already if the same process made it.
func (c *Checker) importDomain(p *process, call *trace.Call) {
	if !call.Failed() {
		p.parents[trace.Name(call.Result)] = ""
	}
}

// checkMemory checks the segments of a request that is posted to a queue of that protection domain.
func (c *Checker) checkMemory(p *process, call *trace.Call, r *request, pd string, inline bool) {
	for _, s := range r.segments {
		if inline || s.length == 0 {
			continue
		}
		known := s.region
		switch {
		case known == nil:
			c.report(
				call, finding.UnknownKey, nil,
				"%s has the lkey %#x, which no region has", r.name(), s.key,
			)
		case known.gone:
			c.report(
				call, finding.RegionGone, []Place{{"ibv_dereg_mr", p.endOf(known.name)}, known.registration()},
				"%s has the lkey %#x of %s, which was deregistered", r.name(), s.key, known.name,
			)
		case p.haveOtherDomains(known.pd, pd):
			c.report(
				call, finding.WrongPD, []Place{known.registration()},
				"%s uses %s of %s, and its queue is of %s", r.name(), known.name, known.pd, pd,
			)
		case !s.within(known.span):
			c.report(
				call, finding.OutsideRegion, []Place{known.registration()},
				"%s has %d bytes at %#x, and %s has %d bytes at %#x",
				r.name(), s.length, s.address, known.name, known.span.length, known.span.address,
			)
		case r.writes && !known.writable:
			c.report(
				call, finding.RegionReadOnly, []Place{known.registration()},
				"%s writes into %s, which has no LOCAL_WRITE", r.name(), known.name,
			)
		}
	}
}

// checkOverlap compares the memory of a request with what outstanding requests write to.
func (c *Checker) checkOverlap(p *process, call *trace.Call, r *request) {
	for _, s := range r.segments {
		if s.region != nil && s.region.discards {
			continue
		}
		other := p.writing.find(s)
		if other == nil || other == r {
			continue
		}
		kind, what := finding.SentTooEarly, "%s sends memory that an outstanding %s may write to"
		if r.writes {
			kind, what = finding.ReceiveOverlap, "%s and an outstanding %s write to the same memory"
		}
		if c.isRepeated(key{call.Process, kind, call.Site, other.site}) {
			return
		}
		c.report(
			call, kind, []Place{{other.call, other.site}},
			what+" (wr_id %#x and %#x)", r.name(), other.kind(), r.id, other.id,
		)
		return
	}
}

// memoryChanged reports memory that was changed while it was sent. The library compares it before the program learns of
// the completion, so the request is outstanding still.
func (c *Checker) memoryChanged(p *process, call *trace.Call) {
	qp := p.numbers[uint32(trace.NumberOf(call.Arguments, "qp_num"))]
	if qp == nil {
		return
	}
	id, address := trace.NumberOf(call.Arguments, "wr_id"), trace.NumberOf(call.Arguments, "addr")
	for _, r := range qp.send.posted {
		if r.id != id || len(r.segments) == 0 {
			continue
		}
		for _, s := range r.segments {
			// What an outstanding receive writes is another finding.
			if s.address != address || p.writing.find(s) != nil {
				continue
			}
			c.reportAt(
				call.Process, r.call, r.site, finding.ChangedInFlight, []Place{{"poll of its completion", call.Site}},
				"the %d bytes at %#x of %s of %s are changed before its completion is polled (wr_id %#x)",
				s.length, s.address, r.name(), qp.name, id,
			)
			return
		}
	}
}

// memoryGone checks free(3), munmap(2) and their kin, which come only with memory of a region.
func (c *Checker) memoryGone(p *process, call *trace.Call) {
	gone := span{trace.NumberOf(call.Arguments, "addr"), trace.NumberOf(call.Arguments, "length")}
	for _, r := range p.regions {
		if !r.memory.overlaps(gone) {
			continue
		}
		addressed := gone // as requests address it
		addressed.address += r.span.address - r.memory.address
		if qp, user := p.userOf(r, addressed); qp != nil {
			c.report(
				call, finding.FreedInUse, []Place{{user.call, user.site}, r.registration()},
				"%s gives memory back that %s of %s uses (wr_id %#x)", call.Name, user.name(), qp.name, user.id,
			)
			return
		}
		c.report(
			call, finding.FreedRegistered, []Place{r.registration()},
			"%s gives memory back that %s has registered", call.Name, r.name,
		)
		return
	}
}
