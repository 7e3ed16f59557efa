package lab

import (
	"fmt"

	"rdmarun/rdmacore"
)

// Fault is messages being lost on purpose, between two roles.
type Fault struct {
	lab     *Lab
	rule    *rdmacore.FaultRule
	release *free
	lost    int
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
	f := &Fault{lab: l, rule: rule}
	f.release = l.later("a fault", func() (err error) {
		f.lost, err = rule.Heal()
		return err
	})
	return f, nil
}

// Bind gives the fault its name.
func (f *Fault) Bind(name string) { f.lab.faults[name] = f }

// Heal ends a fault and returns how many messages it lost.
func (l *Lab) Heal(name string) (lost int, err error) {
	f := l.faults[name]
	if f == nil {
		return 0, &Failure{What: fmt.Sprintf("there is no fault %q", name), Hint: "the step that makes it did not run"}
	}
	if f.release.done {
		return 0, &Failure{What: fmt.Sprintf("the fault %q is healed already", name)}
	}
	err = f.release.now()
	return f.lost, err
}
