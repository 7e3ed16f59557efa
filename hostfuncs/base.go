package hostfuncs

import (
	"log/slog"
	"runtime"
	"syscall"
	"time"
)

func baseFunctions() []Function {
	return []Function{
		{
			Name: "abi_version", Since: v1, Capability: CapabilityBase,
			Doc:     "Returns the version of the ABI that this host implements.",
			Result:  "major << 16 | minor",
			binding: bind0((*Instance).abiVersion),
		},
		{
			Name: "has_function", Since: v1, Capability: CapabilityBase,
			Doc: "Reports whether this host has the function and grants it to this guest, so that a guest " +
				"can do without one.",
			Params: []Param{
				{"name", In, "text", "the function's import name"},
				{"length", U32, "", "of name, in bytes"},
			},
			Result:  "1 if the guest may call it, else 0",
			binding: bind2((*Instance).hasFunction),
		},
		{
			Name: "error_text", Since: v1, Capability: CapabilityBase,
			Doc: "Writes the sentence that explains this guest's last failed call: which function of " +
				"librdmacm or libibverbs failed and why.",
			Params: []Param{
				{"text", Out, "text", "where to write it; not terminated"},
				{"size", U32, "", "room there, in bytes; a longer sentence is cut"},
			},
			Result:  "the number of bytes written; 0 when no call has failed",
			binding: bind2((*Instance).errorText),
		},
		{
			Name: "clock_ns", Since: v1, Capability: CapabilityBase,
			Doc:     "Reads the clock of the run, on which timeouts are measured. Only differences mean anything.",
			Params:  []Param{{"now", Out, "u64", "nanoseconds"}},
			binding: bind1((*Instance).clockNS),
		},
		{
			Name: "yield", Since: v1, Capability: CapabilityBase,
			Doc: "Does what sched_yield does, for guests made for an ABI before 1.5: the name is a word of its own " +
				"in some " +
				"languages.",
			binding: bind0((*Instance).yield),
		},
		{
			Name: "sched_yield", Since: v1_5, Capability: CapabilityBase,
			Doc: "Lets others run that wait for this processor (sched_yield(2)). A guest that polls its memory " +
				"or a queue should call it now and then. Its peer may be one of these guests, and on a virtual " +
				"clock no time passes otherwise.",
			binding: bind0((*Instance).yield),
		},
		{
			Name: "log", Since: v1, Capability: CapabilityBase,
			Doc: "Writes one line to the log of the run.",
			Params: []Param{
				{"level", U32, "log_level", ""},
				{"text", In, "text", "the line, without its end"},
				{"length", U32, "", "of text, in bytes"},
			},
			Errors: "EINVAL: no such level. EMSGSIZE: more than 65536 bytes. ENOSPC: the guest has written as much " +
				"as it may.",
			binding: bind3((*Instance).logLine),
		},
	}
}

func (i *Instance) abiVersion() int32 { return Current.Number() }

func (i *Instance) hasFunction(name Pointer, length uint32) int32 {
	wanted, wrong := i.text(name, length)
	if wrong != 0 {
		return i.badPointer("name", wrong)
	}
	for _, function := range Functions() {
		if function.Name == wanted && function.Capability&i.denied == 0 {
			return 1
		}
	}
	return 0
}

func (i *Instance) errorText(text Pointer, size uint32) int32 {
	room, wrong := i.bytes(text, size)
	if wrong != 0 {
		return i.badPointer("text", wrong)
	}
	if i.lastError == nil {
		return 0
	}
	return int32(copy(room, i.lastError.Error()))
}

func (i *Instance) clockNS(now Pointer) int32 {
	out, wrong := view[uint64](i, now, 1)
	if wrong != 0 {
		return i.badPointer("now", wrong)
	}
	out[0] = uint64(i.clock.Now())
	return 0
}

// virtualYield is what a yield takes on a virtual clock, in the order of what a spin takes on the wall.
const virtualYield = time.Microsecond

// yield gives way twice: to goroutines of this process, and to threads of any (sched_yield(2), which never
// fails).
func (i *Instance) yield() int32 {
	if i.clock.Virtual() {
		i.clock.Sleep(i.ctx, virtualYield) // ends early only with the guest
	} else {
		runtime.Gosched()
		syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
	i.exitIfOver()
	return 0
}

func (i *Instance) logLine(level uint32, text Pointer, length uint32) int32 {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	if level >= uint32(len(levels)) {
		return i.refuse(syscall.EINVAL, "level is 0 (debug) to 3 (error)")
	}
	line, wrong := i.text(text, length)
	if wrong != 0 {
		return i.badPointer("text", wrong)
	}
	if i.log == nil {
		return 0
	}
	return i.result(i.log(levels[level], line))
}
