package testbed

import (
	"fmt"
	"syscall"

	"rdmarun/rdmacore"
)

// Object is something that a step made and that is no endpoint.
type Object[T any] struct {
	role    *Role
	kind    Kind[T]
	name    string // "" until Bind
	native  T
	destroy func() error
	release *free
}

// The objects that steps make.
type (
	Domain      = Object[*rdmacore.PD]
	Queue       = Object[*rdmacore.CQ]
	SharedQueue = Object[*rdmacore.SRQ]
	Handle      = Object[*rdmacore.AH]
	Window      = Object[*rdmacore.MW]
)

// Kind is a kind of objects: what one is called, and the verb that makes one.
type Kind[T any] struct{ What, Maker string }

// The kinds of objects that steps make, name and free.
var (
	Domains      = Kind[*rdmacore.PD]{"protection domain", "alloc_pd"}
	Queues       = Kind[*rdmacore.CQ]{"completion queue", "create_cq"}
	SharedQueues = Kind[*rdmacore.SRQ]{"shared receive queue", "create_srq"}
	Handles      = Kind[*rdmacore.AH]{"address handle", "create_ah"}
	Windows      = Kind[*rdmacore.MW]{"memory window", "alloc_mw"}
)

// objectName is how steps refer to an object: its kind, and the name that `as` gave it.
type objectName struct{ what, name string }

// named is an Object of any type.
type named interface {
	// concerns reports whether an asynchronous event is of the object.
	concerns(event rdmacore.AsyncEvent) bool
	text() string
}

// made gives an object to the role, which frees it at the end of the case.
func (k Kind[T]) made(r *Role, native T, destroy func() error, err error) (*Object[T], error) {
	if err != nil {
		return nil, err
	}
	o := &Object[T]{role: r, kind: k, native: native, destroy: destroy}
	o.release = r.deferFree(k.What, destroy)
	r.testbed.owners.add(native, r)
	return o, nil
}

// Bind gives the object its name.
func (o *Object[T]) Bind(name string) {
	o.name = name
	o.release.what = fmt.Sprintf("%s's %s %s", o.role.Name, o.kind.What, name)
	o.role.objects[objectName{o.kind.What, name}] = o
}

// Native is the object of the core.
func (o *Object[T]) Native() T { return o.native }

// Free frees the object before the end of the case, unless something still uses it.
func (o *Object[T]) Free() error {
	t := o.role.testbed
	before := len(t.lost)
	t.recordLostEvents(o.concerns)
	if err := o.destroy(); err != nil {
		t.lost = t.lost[:before]
		return err
	}
	o.release.done = true
	t.owners.remove(o.native)
	return nil
}

// FreeFirst makes the object the next to be freed, before everything made so far: it uses some of that.
func (o *Object[T]) FreeFirst() { o.role.testbed.freeFirst(o.release) }

func (o *Object[T]) text() string { return o.role.Name + " " + o.name }

func (o *Object[T]) concerns(event rdmacore.AsyncEvent) bool {
	return any(event.CQ) == any(o.native) || any(event.SRQ) == any(o.native)
}

// Find finds an object of a role by the name that a step's `as` gave it.
func (k Kind[T]) Find(r *Role, name string) (*Object[T], error) {
	if err := r.alive(); err != nil {
		return nil, err
	}
	if o, ok := r.objects[objectName{k.What, name}].(*Object[T]); ok {
		return o, nil
	}
	return nil, &Failure{
		What: fmt.Sprintf("role %s has no %s %q", r.Name, k.What, name), Hint: "the step " + k.Maker + " did not run",
		Errno: syscall.EBADF,
	}
}

// NewDomain makes a protection domain of the role's device.
func (r *Role) NewDomain() (*Domain, error) {
	pd, err := r.device.AllocPD()
	return Domains.made(r, pd, pd.Dealloc, err)
}

// NewQueue makes a completion queue of the role's device.
func (r *Role) NewQueue(entries int) (*Queue, error) {
	cq, err := r.device.CreateCQ(entries)
	return Queues.made(r, cq, cq.Destroy, err)
}

// NewExtendedQueue makes a completion queue with these fields in its completions.
func (r *Role) NewExtendedQueue(entries int, fields rdmacore.WCFields) (*Queue, error) {
	cq, err := r.device.CreateCQEx(entries, fields)
	return Queues.made(r, cq, cq.Destroy, err)
}

// NewSharedQueue makes a shared receive queue.
func (r *Role) NewSharedQueue(pd *rdmacore.PD, attr rdmacore.SRQAttr) (*SharedQueue, error) {
	srq, err := pd.CreateSRQ(attr)
	return SharedQueues.made(r, srq, srq.Destroy, err)
}

// NewSharedQueue makes a shared receive queue that belongs to the endpoint's id, and ends with it at the latest.
// pd nil is the default of the id's device.
func (e *Endpoint) NewSharedQueue(pd *rdmacore.PD, attr rdmacore.SRQAttr) (*SharedQueue, error) {
	err := e.id.CreateSRQ(pd, attr)
	srq := e.id.SRQ()
	o, err := SharedQueues.made(e.Role, srq, e.id.DestroySRQ, err)
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
	return Handles.made(r, ah, ah.Destroy, err)
}

// NewWindow allocates a memory window.
func (r *Role) NewWindow(pd *rdmacore.PD, kind rdmacore.MWType) (*Window, error) {
	mw, err := pd.AllocMW(kind)
	return Windows.made(r, mw, mw.Dealloc, err)
}
