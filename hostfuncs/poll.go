package hostfuncs

import (
	"context"
	"errors"
	"slices"
	"structs"
	"syscall"

	"rdmarun/rdmacore"
)

// PollEntry is struct pollfd for what a guest has.
type PollEntry struct {
	_        structs.HostLayout
	Handle   Handle `abi:"handle" doc:"an event_channel, ep, cq, comp_channel, eventfd, stream or device; 0 with PRI the default device, else nothing"`
	Events   uint32 `abi:"events" enum:"poll_events" doc:"what to look for: IN, PRI, OUT"`
	Revents  uint32 `abi:"revents" enum:"poll_events" doc:"what is there: of events, and ERR, HUP, NVAL unasked"`
	Reserved uint32 `abi:"reserved" doc:"0"`
}

// What may be asked of an entry, and answered: the values of <poll.h>.
const (
	pollIn   = 0x01
	pollPri  = 0x02
	pollOut  = 0x04
	pollErr  = 0x08
	pollHup  = 0x10
	pollNval = 0x20
	pollAll  = pollIn | pollPri | pollOut | pollErr | pollHup | pollNval
)

// maxPollEntries bounds what one poll_set looks at again and again: at 0.1 us each it is back within milliseconds.
const maxPollEntries = 1 << 14

// pollEntrySize is the host's memory for an entry while it is checked, in bytes. It has the copy of the entry, at most
// three sources with their handles, and the result of each.
const pollEntrySize = 512

func pollFunctions() []Function {
	return []Function{{
		Name: "poll_set", Since: v1_5, Capability: CapabilityBase, Blocking: true,
		Doc: "Waits until one of several things is there, and takes none of them (poll(2)). IN of an event_channel: " +
			"an " +
			"event of any endpoint. IN of an ep: an event of it; of a synchronous one what get_request or complete " +
			"takes. IN of a cq: a completion; PRI of a cq: the event that req_notify requested; IN of a " +
			"comp_channel: an event of its CQs. PRI of an ep, a device " +
			"or 0: an asynchronous event of its device, of that, or of the default device, for wait_async. IN of an " +
			"eventfd: it is not 0; OUT: it can be " +
			"added to. What is there is there again at the next call, until it is taken. A guest that has to " +
			"wait for something of its own as well, or that has threads which end each other's waits, adds an eventfd.",
		Params: []Param{
			{"entries", InOut, "poll_entry", "an array"},
			{"count", U32, "", "elements of entries, 16384 at most"},
			{"timeout_ns", I64, "", "how long to wait; -1 without limit"},
		},
		Result: "the number of entries with a revents other than 0; 0 when the time is over",
		Errors: "EINVAL: too many entries, or events that there are not. ECANCELED: the guest was asked to stop. " +
			"EMFILE: no " +
			"descriptor is left to wait with. ENOMEM: the budget has no 512 bytes for each entry. A handle that " +
			"names nothing, or nothing that can be waited for, is no " +
			"error: its revents is NVAL.",
		binding: bind3((*Instance).pollSet),
	}}
}

// asked is one thing that an entry asks for, and its source.
type asked struct {
	entry, source int
	revent        uint32
}

func (i *Instance) pollSet(at Pointer, count uint32, timeout Nanoseconds) int32 {
	if count > maxPollEntries {
		return i.refuse(syscall.EINVAL, "poll_set takes 16384 entries at most")
	}
	given, wrong := view[PollEntry](i, at, count)
	if wrong != 0 {
		return i.badPointer("entries", wrong)
	}
	cost := Cost{Memory: int64(count) * pollEntrySize}
	if err := i.budget.Charge(cost); err != nil {
		return i.fail(err)
	}
	defer i.budget.Credit(cost)
	entries := slices.Clone(given) // a peer may write there
	sources, of, failed := i.pollSources(entries)
	if failed != 0 {
		return failed
	}
	found := make([]rdmacore.Readiness, len(sources))
	answer := func() (ready int32) {
		for _, each := range of {
			switch found[each.source] {
			case rdmacore.Ready:
				entries[each.entry].Revents |= each.revent
			case rdmacore.Broken:
				entries[each.entry].Revents |= pollErr
			}
		}
		for n := range entries {
			if given[n].Revents = entries[n].Revents; entries[n].Revents != 0 {
				ready++
			}
		}
		return ready
	}
	invalid := slices.ContainsFunc(entries, func(e PollEntry) bool { return e.Revents != 0 })
	if i.poller.Look(i.ctx, sources, found) > 0 || invalid || timeout == 0 {
		i.exitIfOver()
		return answer()
	}
	if err := i.openPoller(); err != nil {
		return i.fail(err)
	}
	failed = i.wait(timeout, func(ctx context.Context) error {
		_, err := i.poller.Wait(ctx, sources, found)
		return err
	})
	if failed != 0 && failed != -int32(syscall.ETIMEDOUT) {
		return failed
	}
	return answer()
}

// openPoller makes what the guest waits with, at its first wait.
func (i *Instance) openPoller() error {
	if i.poller != nil {
		return nil
	}
	if err := i.budget.Charge(pollerCost); err != nil {
		return err
	}
	poller, err := i.provider.NewPoller()
	if err != nil {
		i.budget.Credit(pollerCost)
		return err
	}
	i.poller = poller
	return nil
}

// pollSources is what to look at for some entries, each of which has its revents afterwards as far as that is known.
// The asynchronous events of a device are one source for all entries: to look for this guest's is to look at all that
// are kept.
func (i *Instance) pollSources(entries []PollEntry) (sources []rdmacore.Source, of []asked, failed int32) {
	async := make(map[*rdmacore.Device]int)
	for n := range entries {
		e := &entries[n]
		e.Revents = 0
		if e.Events&^uint32(pollAll) != 0 {
			return nil, nil, i.refuse(syscall.EINVAL, "events are of IN, PRI and OUT")
		}
		source := i.pollable(e.Handle)
		if source == nil {
			e.Revents = pollNval
			continue
		}
		for _, event := range [...]uint32{pollIn, pollPri, pollOut, pollHup} {
			if e.Events&event == 0 && event != pollHup {
				continue
			}
			switch one, err := source(event); {
			case err == errNeverCame:
			case err != nil:
				e.Revents |= pollErr
			default:
				device := one.Device()
				at, known := async[device]
				if !known {
					at, sources = len(sources), append(sources, one)
				}
				if device != nil {
					async[device] = at
				}
				of = append(of, asked{n, at, event})
			}
		}
	}
	return sources, of, 0
}

// errNeverCame is for an event that objects of a kind do not have; poll(2) waits for it until the timeout.
var errNeverCame = errors.New("no such event")

// pollable makes the sources of what a handle names; nil when that is nothing to wait for.
func (i *Instance) pollable(handle Handle) func(event uint32) (rdmacore.Source, error) {
	if handle == 0 {
		return i.asyncSource(nil)
	}
	if named, ok := i.devices.get(handle); ok {
		return i.asyncSource(func() *rdmacore.Device { return named.device })
	}
	if channel, ok := i.channels.get(handle); ok {
		return onIn(func() (rdmacore.Source, error) { return channel.Source(nil) })
	}
	if ep, ok := i.endpoints.get(handle); ok {
		async := i.asyncSource(ep.id.Device)
		return func(event uint32) (rdmacore.Source, error) {
			if event == pollIn {
				return ep.channel.Source(ep.id)
			}
			return async(event)
		}
	}
	if cq, ok := i.cqs.get(handle); ok {
		return func(event uint32) (rdmacore.Source, error) {
			switch event {
			case pollIn:
				return cq.Source()
			case pollPri:
				return cq.EventSource()
			}
			return rdmacore.Source{}, errNeverCame
		}
	}
	if channel, ok := i.compChannels.get(handle); ok {
		return onIn(channel.Source)
	}
	if fd, ok := i.eventfds.get(handle); ok {
		return fd.source
	}
	if end, ok := i.streams.get(handle); ok {
		return end.source
	}
	return nil
}

func onIn(source func() (rdmacore.Source, error)) func(uint32) (rdmacore.Source, error) {
	return func(event uint32) (rdmacore.Source, error) {
		if event != pollIn {
			return rdmacore.Source{}, errNeverCame
		}
		return source()
	}
}

// asyncSource is that of a device, or of the default device.
func (i *Instance) asyncSource(of func() *rdmacore.Device) func(uint32) (rdmacore.Source, error) {
	return func(event uint32) (source rdmacore.Source, err error) {
		if event != pollPri {
			return source, errNeverCame
		}
		if i.denied&CapabilityWork != 0 {
			return source, syscall.EPERM
		}
		var device *rdmacore.Device
		if of != nil {
			device = of()
		} else if i.device != nil {
			device = i.device
		} else if device, err = i.provider.DefaultDevice(); err != nil {
			return source, err
		}
		if device == nil {
			return source, syscall.ENODEV
		}
		if err := i.mayOpen(device); err != nil {
			return source, err
		}
		return device.AsyncSource(i.concerned)
	}
}

func (i *Instance) closePoller() {
	if i.poller != nil {
		i.poller.Close()
		i.budget.Credit(pollerCost)
		i.poller = nil
	}
}
