package testbed

import (
	"rdmarun/rdmacore"
)

// NewDomain makes a protection domain of the role's device.
func (r *Role) NewDomain() (*Domain, error) {
	pd, err := r.device.AllocPD()
	return made(r, domains, pd, pd.Dealloc, err)
}

// NewQueue makes a completion queue of the role's device.
func (r *Role) NewQueue(entries int) (*Queue, error) {
	cq, err := r.device.CreateCQ(entries)
	return made(r, queues, cq, cq.Destroy, err)
}

// NewExtendedQueue makes a completion queue whose completions have these fields.
func (r *Role) NewExtendedQueue(entries int, fields rdmacore.WCFields) (*Queue, error) {
	cq, err := r.device.CreateCQEx(entries, fields)
	return made(r, queues, cq, cq.Destroy, err)
}

// NewSharedQueue makes a shared receive queue.
func (r *Role) NewSharedQueue(pd *rdmacore.PD, attr rdmacore.SRQAttr) (*SharedQueue, error) {
	srq, err := pd.CreateSRQ(attr)
	return made(r, sharedQueues, srq, srq.Destroy, err)
}

// NewSharedQueue makes a shared receive queue that belongs to the endpoint's id, and ends with it at the latest.
// pd nil is the default of the id's device.
func (e *Endpoint) NewSharedQueue(pd *rdmacore.PD, attr rdmacore.SRQAttr) (*SharedQueue, error) {
	err := e.id.CreateSRQ(pd, attr)
	srq := e.id.SRQ()
	o, err := made(e.Role, sharedQueues, srq, e.id.DestroySRQ, err)
	if err != nil {
		return nil, err
	}
	o.release.do = func() error {
		if e.id.SRQ() != srq {
			return nil // it went with its id
		}
		return e.id.DestroySRQ()
	}
	return o, nil
}

// NewHandle keeps an address handle that create makes.
func (r *Role) NewHandle(create func() (*rdmacore.AH, error)) (*Handle, error) {
	ah, err := create()
	return made(r, handles, ah, ah.Destroy, err)
}

// NewWindow allocates a memory window.
func (r *Role) NewWindow(pd *rdmacore.PD, kind rdmacore.MWType) (*Window, error) {
	mw, err := pd.AllocMW(kind)
	return made(r, windows, mw, mw.Dealloc, err)
}
