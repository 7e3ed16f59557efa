package testbed

import (
	"fmt"

	"rdmarun/rdmacore"
)

// Fault loses messages between two roles on purpose, or breaks their device.
type Fault struct {
	name    string // "" until Bind
	testbed *Testbed
	release *free
	lost    int
	repair  func() error // what Heal does after it; nil: nothing
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
	return t.newFault(fault)
}

// newFault puts a fault in force until Heal or the end of the case.
func (t *Testbed) newFault(fault rdmacore.Fault) (*Fault, error) {
	rule, err := t.provider.Fault(fault)
	if err != nil {
		return nil, err
	}
	f := &Fault{testbed: t}
	f.release = t.deferFree("a fault", func() (err error) {
		f.lost, err = rule.Heal()
		return err
	})
	return f, nil
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

// Heal ends the fault and returns how many messages it lost, or how many ids were told of it.
func (f *Fault) Heal() (lost int, err error) {
	if f.release.done {
		return 0, &Failure{What: fmt.Sprintf("the fault %q is healed already", f.name)}
	}
	if err = f.release.freeNow(); err == nil && f.repair != nil {
		err = f.repair()
	}
	return f.lost, err
}

// RemoveDevice takes away the device of all roles.
func (t *Testbed) RemoveDevice() (*Fault, error) {
	f, err := t.newFault(rdmacore.Fault{Action: rdmacore.FaultRemoveDevice})
	if err == nil {
		f.repair = t.reopenDevice
	}
	return f, err
}

// ChangeAddress gives the network interface of all roles another hardware address.
func (t *Testbed) ChangeAddress() (*Fault, error) {
	return t.newFault(rdmacore.Fault{Action: rdmacore.FaultChangeAddress})
}

// reopenDevice gives the roles what they had at their beginning on the device that is back: it is a new one, and
// objects of the old one are of no use any more.
func (t *Testbed) reopenDevice() error {
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
	device, err := Device(r.testbed.provider, r.device.Name())
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
