package hostfuncs

import (
	"errors"
	"fmt"

	"rdmarun/rdmacore"
)

// Close frees everything that the guest left, after its last instruction, and reports what that was.  Its
// peers see DISCONNECTED, as when a process ends.  The error names what could not be freed.
//
// Connections end first, so that peers learn of the end before anything they use is gone; QPs go before
// the shared queues, windows and memory regions they reach, and those before the ids, whose device keeps the default PD.
func (i *Instance) Close() (rdmacore.Live, error) {
	freed := i.live()
	var errs []error
	free := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("free the guest's %s: %w", what, err))
		}
	}
	freeAll(&i.events, (*rdmacore.Event).Ack, free)
	i.endpoints.all(func(_ Handle, ep *endpoint) bool {
		ep.id.Disconnect() // refused where there is no connection, which is as good
		return true
	})
	i.endpoints.all(func(_ Handle, ep *endpoint) bool {
		if ep.qp != 0 {
			free("QP", ep.id.DestroyQP())
			i.forgetQP(ep)
		}
		return true
	})
	freeAll(&i.srqs, (*rdmacore.SRQ).Destroy, free)
	freeAll(&i.ahs, (*rdmacore.AH).Destroy, free)
	freeAll(&i.mws, (*rdmacore.MW).Dealloc, free)
	freeAll(&i.mrs, (*rdmacore.MR).Dereg, free)
	// Children may hold the requests of their listeners.
	i.endpoints.all(func(handle Handle, ep *endpoint) bool {
		if !ep.id.Listening() {
			free("ep", ep.destroy())
			i.endpoints.remove(handle)
		}
		return true
	})
	freeAll(&i.endpoints, (*endpoint).destroy, free)
	freeAll(&i.cqs, (*rdmacore.CQ).Destroy, free)
	freeAll(&i.pds, (*rdmacore.PD).Dealloc, free)
	freeAll(&i.channels, (*eventChannel).close, free)
	clear(i.byID)
	i.requestStop()
	i.memory, i.region, i.base = nil, nil, 0
	return freed, errors.Join(errs...)
}

func freeAll[T comparable](table *handleTable[T], free func(T) error, report func(string, error)) {
	table.all(func(handle Handle, object T) bool {
		report(table.kind.String(), free(object))
		table.remove(handle)
		return true
	})
}

// live counts what the guest has.
func (i *Instance) live() rdmacore.Live {
	live := make(rdmacore.Live)
	for kind, count := range map[rdmacore.Kind]int{
		rdmacore.KindEventChannel: i.channels.count(), rdmacore.KindID: i.endpoints.count(),
		rdmacore.KindPD: i.pds.count(), rdmacore.KindMR: i.mrs.count(),
		rdmacore.KindCQ: i.cqs.count(), rdmacore.KindQP: i.qps.count(),
		rdmacore.KindSRQ: i.srqs.count(), rdmacore.KindAH: i.ahs.count(), rdmacore.KindMW: i.mws.count(),
	} {
		if count != 0 {
			live[kind] = int64(count)
		}
	}
	return live
}
