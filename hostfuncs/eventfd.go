package hostfuncs

import (
	"math"
	"syscall"

	"rdmarun/rdmacore"
)

// eventfd is a counter of the guest's own that poll_set looks at (eventfd(2)).  A guest is one thread to its host, so
// the counter does not change during a wait.
type eventfd struct {
	count     uint64
	semaphore bool
}

const (
	efdSemaphore = 1
	efdMost      = math.MaxUint64 - 1
)

func eventfdFunctions() []Function {
	fd := Param{"eventfd", HandleOf, "eventfd", ""}
	return []Function{
		{
			Name: "create_eventfd", Since: v1_5, Capability: CapabilityBase,
			Doc: "Makes a counter that poll_set looks at (eventfd(2)): how one thread of a guest that has several " +
				"ends the " +
				"wait of another, before it waits.",
			Params:  []Param{{"initval", U32, "", "what it begins with"}, {"flags", U32, "eventfd_flags", ""}},
			Result:  "the eventfd's handle",
			Errors:  "EINVAL: no such flag.",
			binding: bind2((*Instance).createEventFD),
		},
		{
			Name: "destroy_eventfd", Since: v1_5, Capability: CapabilityBase,
			Doc:     "Frees an eventfd.",
			Params:  []Param{fd},
			binding: bind1((*Instance).destroyEventFD),
		},
		{
			Name: "eventfd_write", Since: v1_5, Capability: CapabilityBase,
			Doc:     "Adds to an eventfd (eventfd_write(3)). It never waits.",
			Params:  []Param{fd, {"value", I64, "", "what to add, a number without a sign"}},
			Errors:  "EAGAIN: it would go beyond 2^64-2. EINVAL: 2^64-1.",
			binding: bind2((*Instance).eventfdWrite),
		},
		{
			Name: "eventfd_read", Since: v1_5, Capability: CapabilityBase,
			Doc: "Takes what an eventfd holds, which is 0 then, or of a semaphore 1 (eventfd_read(3)). It never " +
				"waits: " +
				"poll_set does.",
			Params:  []Param{fd, {"value", Out, "u64", "what was taken"}},
			Errors:  "EAGAIN: it is 0.",
			binding: bind2((*Instance).eventfdRead),
		},
	}
}

func (i *Instance) createEventFD(initval, flags uint32) int32 {
	if flags&^efdSemaphore != 0 {
		return i.refuse(syscall.EINVAL, "flags of an eventfd are SEMAPHORE or 0")
	}
	return create(i, &i.eventfds, plainCost, func() (*eventfd, error) {
		return &eventfd{count: uint64(initval), semaphore: flags&efdSemaphore != 0}, nil
	}, (*eventfd).destroy)
}

func (*eventfd) destroy() error { return nil }

func (i *Instance) destroyEventFD(handle Handle) int32 {
	return destroy(i, &i.eventfds, handle, (*eventfd).destroy)
}

func (i *Instance) eventfdWrite(handle Handle, value uint64) int32 {
	fd, ok := i.eventfds.get(handle)
	switch {
	case !ok:
		return i.badHandle(kindEventFD)
	case value > efdMost:
		return i.refuse(syscall.EINVAL, "an eventfd takes 2^64-2 at most")
	case value > efdMost-fd.count:
		return i.refuse(syscall.EAGAIN, "the eventfd would go beyond 2^64-2")
	}
	fd.count += value
	return 0
}

func (i *Instance) eventfdRead(handle Handle, at Pointer) int32 {
	fd, ok := i.eventfds.get(handle)
	if !ok {
		return i.badHandle(kindEventFD)
	}
	out, wrong := view[uint64](i, at, 1)
	if wrong != 0 {
		return i.badPointer("value", wrong)
	}
	if fd.count == 0 {
		return i.refuse(syscall.EAGAIN, "the eventfd is 0")
	}
	taken := fd.count
	if fd.semaphore {
		taken = 1
	}
	out[0], fd.count = taken, fd.count-taken
	return 0
}

func (fd *eventfd) source(event uint32) (rdmacore.Source, error) {
	switch event {
	case pollIn:
		return rdmacore.NewSource(func() bool { return fd.count > 0 }, nil), nil
	case pollOut:
		return rdmacore.NewSource(func() bool { return fd.count < efdMost }, nil), nil
	}
	return rdmacore.Source{}, errNeverCame
}
