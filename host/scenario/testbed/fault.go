package testbed

import (
	"fmt"

	"rdmarun/rdmacore"
)

// Fault is messages being lost on purpose, between two roles, or what happens to their device.
type Fault struct {
	lab     *Lab
	release *free
	lost    int
	mend    func() error // what is left to do when a step has healed it; nil: nothing
}

// Break begins to lose what fault says between two roles, whose addresses it fills in.
func (l *Lab) Break(from, to *Role, fault rdmacore.Fault) (*Fault, error) {
	if from.address == to.address {
		return nil, &Failure{
			What: fmt.Sprintf("roles %s and %s have one address, so there is no link between them", from.Name, to.Name),
			Hint: "on soft each role has an address of its own",
		}
	}
	fault.From, fault.To = from.address, to.address
	rule, err := l.provider.Fault(fault)
	if err != nil {
		return nil, err
	}
	return l.inForce(rule), nil
}

func (l *Lab) inForce(rule *rdmacore.FaultRule) *Fault {
	f := &Fault{lab: l}
	f.release = l.later("a fault", func() (err error) {
		f.lost, err = rule.Heal()
		return err
	})
	return f
}

// Bind gives the fault its name.
func (f *Fault) Bind(name string) { f.lab.faults[name] = f }

// Heal ends a fault and returns how many messages it lost, or how many ids heard of it.
func (l *Lab) Heal(name string) (lost int, err error) {
	f := l.faults[name]
	if f == nil {
		return 0, &Failure{What: fmt.Sprintf("there is no fault %q", name), Hint: "the step that makes it did not run"}
	}
	if f.release.done {
		return 0, &Failure{What: fmt.Sprintf("the fault %q is healed already", name)}
	}
	if err = f.release.now(); err == nil && f.mend != nil {
		err = f.mend()
	}
	return f.lost, err
}

// RemoveDevice has the device of all roles go away.
func (l *Lab) RemoveDevice() (*Fault, error) {
	f, err := l.breakDevice(rdmacore.FaultRemoveDevice)
	if err == nil {
		f.mend = l.returned
	}
	return f, err
}

// ChangeAddress gives the network interface of all roles another hardware address.
func (l *Lab) ChangeAddress() (*Fault, error) { return l.breakDevice(rdmacore.FaultChangeAddress) }

func (l *Lab) breakDevice(action rdmacore.FaultAction) (*Fault, error) {
	rule, err := l.provider.Fault(rdmacore.Fault{Action: action})
	if err != nil {
		return nil, err
	}
	return l.inForce(rule), nil
}

// returned gives the roles what they had at their beginning on the device that is back: it is a new one, and
// what is of the old one is of no use any more.
func (l *Lab) returned() error {
	for _, role := range l.roles {
		if role.dead {
			continue
		}
		if err := role.reopen(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Role) reopen() error {
	device, err := deviceNamed(r.lab.provider, r.device.Name())
	if err != nil {
		return err
	}
	r.moveTo(device)
	if r.guest != nil {
		return nil
	}
	if r.pd, err = device.AllocPD(); err != nil {
		return err
	}
	r.later("PD", r.pd.Dealloc)
	for _, buffer := range r.buffers {
		if err := buffer.renew(); err != nil {
			return err
		}
	}
	return nil
}
