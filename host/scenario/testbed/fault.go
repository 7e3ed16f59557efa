package testbed

import (
	"fmt"

	"rdmarun/rdmacore"
)

// Fault is messages being lost on purpose, between two roles, or what happens to their device.
type Fault struct {
	name    string // "" while it has none
	testbed *Testbed
	release *free
	lost    int
	mend    func() error // what is left to do when a step has healed it; nil: nothing
}

// Break begins to lose what fault says between two roles, whose addresses it fills in.
func (t *Testbed) Break(from, to *Role, fault rdmacore.Fault) (*Fault, error) {
	if from.address == to.address {
		return nil, &Failure{
			What: fmt.Sprintf("roles %s and %s have one address, so there is no link between them", from.Name, to.Name),
			Hint: "on soft each role has an address of its own",
		}
	}
	fault.From, fault.To = from.address, to.address
	rule, err := t.provider.Fault(fault)
	if err != nil {
		return nil, err
	}
	return t.inForce(rule), nil
}

func (t *Testbed) inForce(rule *rdmacore.FaultRule) *Fault {
	f := &Fault{testbed: t}
	f.release = t.deferFree("a fault", func() (err error) {
		f.lost, err = rule.Heal()
		return err
	})
	return f
}

// Bind gives the fault its name.
func (f *Fault) Bind(name string) {
	f.name = name
	f.testbed.faults[name] = f
}

// Fault finds a fault by the name that a step's `as` gave it.
func (t *Testbed) Fault(name string) (*Fault, error) {
	if f := t.faults[name]; f != nil {
		return f, nil
	}
	return nil, &Failure{What: fmt.Sprintf("there is no fault %q", name), Hint: "the step that makes it did not run"}
}

// Heal ends the fault and returns how many messages it lost, or how many ids heard of it.
func (f *Fault) Heal() (lost int, err error) {
	if f.release.done {
		return 0, &Failure{What: fmt.Sprintf("the fault %q is healed already", f.name)}
	}
	if err = f.release.freeNow(); err == nil && f.mend != nil {
		err = f.mend()
	}
	return f.lost, err
}

// RemoveDevice has the device of all roles go away.
func (t *Testbed) RemoveDevice() (*Fault, error) {
	f, err := t.breakDevice(rdmacore.FaultRemoveDevice)
	if err == nil {
		f.mend = t.returned
	}
	return f, err
}

// ChangeAddress gives the network interface of all roles another hardware address.
func (t *Testbed) ChangeAddress() (*Fault, error) { return t.breakDevice(rdmacore.FaultChangeAddress) }

func (t *Testbed) breakDevice(action rdmacore.FaultAction) (*Fault, error) {
	rule, err := t.provider.Fault(rdmacore.Fault{Action: action})
	if err != nil {
		return nil, err
	}
	return t.inForce(rule), nil
}

// returned gives the roles what they had at their beginning on the device that is back: it is a new one, and
// what is of the old one is of no use any more.
func (t *Testbed) returned() error {
	for _, role := range t.roles {
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
	device, err := deviceNamed(r.testbed.provider, r.device.Name())
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
	r.deferFree("PD", r.pd.Dealloc)
	for _, buffer := range r.buffers {
		if err := buffer.renew(); err != nil {
			return err
		}
	}
	return nil
}
