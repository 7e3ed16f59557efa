package hostfuncs

import (
	"errors"
	"fmt"

	"rdmarun/rdmacore"
)

// Close frees everything that the guest left, after its last instruction, and returns what that was.  Its
// peers see DISCONNECTED, as when a process ends.  The error names what could not be freed.
//
// Connections end first, so that peers see the end before anything they use is gone. QPs are freed before the shared
// queues, windows and memory regions that they use. Those are freed before the ids, because an id's device keeps the
// default PD. This order does not always match the references. An unread request is an endpoint with a QP of the
// listener's shared queue, and is freed with the listener. So objects in use are tried again, as long as something
// else is freed.
func (i *Instance) Close() (rdmacore.Live, error) {
	freed := i.live()
	end := ending{Instance: i}
	freeAll(&end, &i.events, (*rdmacore.Event).Ack, always)
	i.endpoints.all(func(_ Handle, ep *endpoint) bool {
		ep.id.Disconnect() // refused where there is no connection, which is as good
		return true
	})
	end.pass()
	for left := i.count(); left != 0 && end.failed(); left = i.count() {
		end.busy = nil
		if end.pass(); i.count() == left {
			break
		}
	}
	clear(i.byID)
	freeAll(&end, &i.devices, (*opened).close, always)
	freeAll(&end, &i.streams, (*streamEnd).destroy, always)
	freeAll(&end, &i.eventfds, (*eventfd).destroy, always)
	i.closePoller()
	i.work.Free()
	i.requestStop()
	i.memory, i.region, i.base = nil, nil, 0
	return freed, errors.Join(append(end.lost, end.busy...)...)
}

// ending is what went wrong while a guest's objects were freed.
type ending struct {
	*Instance
	lost []error // of what is gone all the same
	busy []error // of what is still there, in the last pass
}

func (e *ending) failed() bool { return len(e.busy) != 0 }

// pass frees what can be freed now.
func (e *ending) pass() {
	i := e.Instance
	i.endpoints.all(func(_ Handle, ep *endpoint) bool {
		if ep.id.QP() != nil {
			err := ep.id.DestroyQP()
			e.note("QP", err, ep.id.QP() == nil)
		}
		i.forgetQP(ep)
		return true
	})
	i.qps.all(func(handle Handle, qp *rdmacore.QP) bool {
		e.note("QP", i.freeQP(handle, qp), false)
		return true
	})
	freeAll(e, &i.srqs, (*rdmacore.SRQ).Destroy, unless)
	freeAll(e, &i.ahs, (*rdmacore.AH).Destroy, unless)
	freeAll(e, &i.mws, (*rdmacore.MW).Dealloc, unless)
	freeAll(e, &i.mrs, (*rdmacore.MR).Dereg, unless)
	// Children may hold the requests of their listeners.
	for _, listeners := range [...]bool{false, true} {
		i.endpoints.all(func(handle Handle, ep *endpoint) bool {
			if ep.id.Listening() == listeners {
				err := ep.destroy()
				e.note("ep", err, ep.id.Destroyed())
				i.forgetEndpoint(handle, ep)
			}
			return true
		})
	}
	freeAll(e, &i.cqs, destroyCQ, unless)
	freeAll(e, &i.compChannels, (*rdmacore.CompChannel).Destroy, unless)
	freeAll(e, &i.pds, (*rdmacore.PD).Dealloc, unless)
	freeAll(e, &i.channels, (*rdmacore.EventChannel).Close, unless)
}

// destroyCQ frees a queue that has not gone with the QPs that it was made for.
func destroyCQ(cq *rdmacore.CQ) error {
	if cq.Destroyed() {
		return nil
	}
	return cq.Destroy()
}

// note keeps the error of an object that is gone, or is not.
func (e *ending) note(what string, err error, gone bool) {
	if err == nil {
		return
	}
	err = fmt.Errorf("free the guest's %s: %w", what, err)
	if gone {
		e.lost = append(e.lost, err)
	} else {
		e.busy = append(e.busy, err)
	}
}

// Whether an object is gone after a call that should have freed it: always, or unless it failed.
func always(error) bool     { return true }
func unless(err error) bool { return err == nil }

func freeAll[T comparable](e *ending, table *handleTable[T], free func(T) error, gone func(error) bool) {
	table.all(func(handle Handle, object T) bool {
		err := free(object)
		e.note(table.kind.String(), err, gone(err))
		if gone(err) {
			table.remove(handle)
		}
		return true
	})
}

// count is how many handles the guest has.
func (i *Instance) count() int {
	return i.channels.count() + i.endpoints.count() + i.pds.count() + i.mrs.count() + i.cqs.count() + i.qps.count() +
		i.events.count() + i.srqs.count() + i.ahs.count() + i.mws.count() + i.compChannels.count()
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
