package program

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdmarun/rdmacore"
)

// Device is the embedded device of a program: each of its processes has one.  All methods apply to every process of the
// program, also to later ones.
//
// A device that NewDevice made may have several programs, one after the other.  Its faults apply to each of them, and
// its counters are those of all.
type Device struct {
	name     string // of the role
	listener *net.UnixListener
	// capturing takes the packets of processes, and capture has them; nil: there is no capture.
	capturing *net.UnixListener
	capture   func(*rdmacore.CapturePacket)
	serving   sync.WaitGroup

	changing chan struct{} // full while orders or the list of processes change; taken before mutex
	holding  bool          // events are held

	mutex     sync.Mutex
	top       int // the supervisor, from which all processes descend; 0: no program runs
	connected map[*net.UnixConn]bool
	quiet     sync.Cond // with mutex: a connection has ended
	ending    bool      // the program has ended, and what its processes said last is read
	processes []*process
	opened    int
	faults    []*fault
	refused   error             // why a process is not controlled; nil: all are
	past      map[string]uint64 // the counters of processes that have ended
	captures  int               // processes that have sent packets
	// uncaptured is why packets of a process are missing; nil: none are.
	uncaptured error
}

// fault is a fault that is in force, with its rule in each process.
type fault struct {
	what  rdmacore.Fault
	rules map[*process]uint32 // of processes that run
	count int                 // what it was applied to in processes that have ended
}

// change begins a change of orders, which changed ends.  Processes that have just started may delay it.
func (d *Device) change() (changed func(), err error) {
	late := time.NewTimer(changeTime)
	defer late.Stop()
	select {
	case d.changing <- struct{}{}:
		return func() { <-d.changing }, nil
	case <-late.C:
		return nil, fmt.Errorf("its processes have not taken earlier orders within %v", changeTime)
	}
}

// addTo applies a fault in one process.
func (d *Device) addTo(p *process, f *fault, end time.Time) error {
	answer, err := p.ask(rdmacore.ControlRequest{Kind: rdmacore.ControlFaultAdd, Fault: &f.what}, end)
	if err != nil {
		return err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !p.past {
		f.rules[p] = answer.Rule
	}
	return nil
}

// Fault begins to apply a fault in all processes.  Each counts for itself, so a fault with a Count happens so often in
// each.  A From or To that is not valid is any address.
//
// heal ends the fault and returns how many messages it affected, also in processes that have ended.
func (d *Device) Fault(what rdmacore.Fault) (heal func() (int, error), err error) {
	if what.Action != rdmacore.FaultRemoveDevice && what.Action != rdmacore.FaultChangeAddress {
		for _, address := range []*netip.Addr{&what.From, &what.To} {
			if !address.IsValid() {
				*address = netip.IPv6Unspecified()
			}
		}
	}
	if _, err := rdmacore.EncodeControl(rdmacore.ControlRequest{Fault: &what}); err != nil {
		return nil, err
	}
	f := &fault{what: what, rules: map[*process]uint32{}}
	changed, err := d.change()
	if err != nil {
		return nil, fmt.Errorf("fault of program of %s: %w", d.name, err)
	}
	defer changed()
	processes, err := d.controlled()
	if err != nil {
		return nil, fmt.Errorf("fault of program of %s: %w", d.name, err)
	}
	d.mutex.Lock()
	d.faults = append(d.faults, f)
	d.mutex.Unlock()
	end := time.Now().Add(controlTime)
	for _, p := range processes {
		if err := d.addTo(p, f, end); err != nil && !errors.Is(err, errGone) {
			_, _ = d.heal(f)
			return nil, fmt.Errorf("fault of program of %s: %w", d.name, err)
		}
	}
	return func() (int, error) {
		count := 0
		changed, err := d.change()
		if err == nil {
			defer changed()
			count, err = d.heal(f)
		}
		if err != nil {
			err = fmt.Errorf("heal fault of program of %s: %w", d.name, err)
		}
		return count, err
	}, nil
}

// heal ends a fault.  The caller holds changing.
func (d *Device) heal(f *fault) (count int, err error) {
	d.mutex.Lock()
	rules := maps.Clone(f.rules)
	clear(f.rules) // so that what processes have counted as they end is not added twice
	d.mutex.Unlock()
	end := time.Now().Add(controlTime)
	for p, rule := range rules {
		answer, more := p.ask(rdmacore.ControlRequest{Kind: rdmacore.ControlFaultRemove, Rule: rule}, end)
		switch {
		case errors.Is(more, errGone):
			err = errors.Join(err, p.awaitEnd(end))
			count += p.tally.applied(rule)
		case more != nil:
			err = errors.Join(err, more)
		default:
			count += int(answer.Count)
		}
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.faults = slices.DeleteFunc(d.faults, func(other *fault) bool { return other == f })
	return count + f.count, err
}

// Counters are the sums of what the devices of all processes have counted, by the names of kernel drivers.
func (d *Device) Counters() (map[string]uint64, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.refused != nil {
		return nil, fmt.Errorf("counters of program of %s: %w", d.name, d.refused)
	}
	sums := maps.Clone(d.past)
	for _, p := range d.processes {
		p.tally.addTo(sums, p.counters)
	}
	return sums, nil
}

// HoldEvents keeps the program's acknowledgements of events (rdma_ack_cm_event(3)) from having an effect, until it is
// called with false.  Then it returns how many events were acknowledged late.
func (d *Device) HoldEvents(hold bool) (late int, err error) {
	changed, err := d.change()
	if err != nil {
		return 0, fmt.Errorf("hold events of program of %s: %w", d.name, err)
	}
	defer changed()
	d.holding = hold
	err = d.askAll(rdmacore.ControlRequest{Kind: rdmacore.ControlHoldEvents, Hold: hold},
		func(answer rdmacore.ControlAnswer) { late += int(answer.Count) })
	if err != nil {
		return late, fmt.Errorf("hold events of program of %s: %w", d.name, err)
	}
	return late, nil
}

// askAll asks all processes that have not ended.
func (d *Device) askAll(request rdmacore.ControlRequest, take func(rdmacore.ControlAnswer)) error {
	processes, err := d.controlled()
	end := time.Now().Add(controlTime)
	for _, p := range processes {
		answer, failed := p.ask(request, end)
		switch {
		case errors.Is(failed, errGone):
			err = errors.Join(err, p.awaitEnd(end))
		case failed != nil:
			err = errors.Join(err, failed)
		default:
			take(answer)
		}
	}
	return err
}

// controlled are the processes that have opened the device, and an error when one of them is not controlled.
func (d *Device) controlled() ([]*process, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.processes), d.refused
}
