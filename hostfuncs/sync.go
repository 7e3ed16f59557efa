package hostfuncs

import (
	"context"
	"syscall"
)

func syncFunctions() []Function {
	return []Function{
		{
			Name: "barrier", Since: v1, Capability: CapabilitySync, Blocking: true,
			Doc: "Waits until every party of the barrier of that name has come to it. Which roles are " +
				"its parties, the scenario says; a guest that runs alone is the only party and goes on.",
			Params: []Param{
				{"name", In, "text", "the barrier's name"},
				{"length", U32, "", "of name, in bytes, 255 at most"},
				{"timeout_ns", I64, "", "how long to wait; -1 without limit"},
			},
			Errors: "EINVAL: the name is longer. ETIMEDOUT: a party did not come in time; the guest has to come " +
				"again. ECANCELED: the guest was asked to stop.",
			binding: bind3((*Instance).waitBarrier),
		},
		{
			Name: "stop_requested", Since: v1, Capability: CapabilitySync,
			Doc: "Reports whether the run has asked this guest to end. The wait in progress at that moment, " +
				"or else the next one, fails once with ECANCELED; a guest that does not wait asks here.",
			Result:  "1 if so, else 0",
			binding: bind0((*Instance).isStopRequested),
		},
	}
}

// maxBarrierName bounds what the host keeps of a name, in bytes.
const maxBarrierName = 255

func (i *Instance) waitBarrier(name Pointer, length uint32, timeout Nanoseconds) int32 {
	barrier, wrong := i.text(name, length)
	if wrong != 0 {
		return i.badPointer("name", wrong)
	}
	if len(barrier) > maxBarrierName {
		return i.refuse(syscall.EINVAL, "the name of a barrier has 255 bytes at most")
	}
	if i.barrier == nil {
		return 0
	}
	return i.wait(timeout, func(ctx context.Context) (err error) {
		return i.barrier(ctx, barrier)
	})
}

func (i *Instance) isStopRequested() int32 {
	if i.stopRequested() {
		return 1
	}
	return 0
}
