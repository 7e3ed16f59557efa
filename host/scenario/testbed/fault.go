package testbed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// Fault loses messages between two roles on purpose, or breaks their device.
type Fault struct {
	name    string // "" until Bind
	What    string // it does, for one without a name
	testbed *Testbed
	release *free
	lost    int
	repair  func() error // what Heal does after it; nil: nothing
}

// Break begins a fault between two roles, and fills in their addresses.  A provider that is here applies it, that of
// the first role if possible: it sees what its role sends and what comes to it.
func (t *Testbed) Break(from, to string, fault rdmacore.Fault) (*Fault, error) {
	var here []*Role
	var addresses [2]netip.Addr
	for i, name := range []string{from, to} {
		if address, is := t.AddressOf(name); is {
			addresses[i] = address
		}
		if role := t.byName[name]; role != nil {
			here = append(here, role)
		} else if _, err := t.Role(name); !addresses[i].IsValid() || i == 1 && here == nil {
			return nil, err
		}
	}
	if between := programsOf(here); between != nil && len(between) == len(here) {
		return t.breakPrograms(between, from, fault)
	}
	if addresses[0] == addresses[1] {
		return nil, &Failure{
			What: fmt.Sprintf("roles %s and %s have one address, so there is no link between them", from, to),
			Hint: "on soft each role has an address of its own",
		}
	}
	if apart(here[0].provider, here[len(here)-1].provider) {
		return nil, &Failure{
			What: fmt.Sprintf(
				"roles %s and %s are on providers that do not reach each other, so there is no link between them", from,
				to,
			),
			Hint: LocalOnlyHint,
		}
	}
	fault.From, fault.To = addresses[0], addresses[1]
	by := here[0]
	if by.program != nil || !by.provider.CanFault() {
		by = here[len(here)-1]
	}
	return t.newFault(fault, by.provider)
}

// programsOf are the roles that programs play.
func programsOf(roles []*Role) (programs []*Role) {
	for _, role := range roles {
		if role.program != nil {
			programs = append(programs, role)
		}
	}
	return programs
}

// breakPrograms begins a fault between two programs.  They have one address, so the first that runs applies it to what
// it sends and receives.  A fault with a direction applies to one of these.
func (t *Testbed) breakPrograms(programs []*Role, from string, fault rdmacore.Fault) (*Fault, error) {
	for _, role := range programs {
		switch {
		case !fault.Directed:
		case role.Name == from:
			fault.Side = rdmacore.FaultSent
		default:
			fault.Side = rdmacore.FaultReceived
		}
		if device := role.program.device; device != nil && running(role.program) {
			return t.newFaultOf(func() (func() (int, error), error) { return device.Fault(fault) })
		}
	}
	return nil, &Failure{
		What: fmt.Sprintf("no program of role %s runs on soft", programs[0].Name),
		Hint: "a step `program: start` comes first, and on a real device nothing can be lost on request",
	}
}

// newFault puts a fault in force on providers until Heal or the end of the case.
func (t *Testbed) newFault(fault rdmacore.Fault, by ...*rdmacore.Provider) (*Fault, error) {
	var apply []func() (func() (int, error), error)
	for _, provider := range by {
		apply = append(apply, func() (func() (int, error), error) {
			rule, err := provider.Fault(fault)
			if err != nil {
				return nil, err
			}
			return rule.Heal, nil
		})
	}
	return t.newFaultOf(apply...)
}

// newFaultOf puts a fault in force, which each of apply does at one place and returns what ends it there.
func (t *Testbed) newFaultOf(apply ...func() (heal func() (int, error), err error)) (*Fault, error) {
	f := &Fault{testbed: t}
	var rules []func() (int, error)
	heal := func() error {
		for len(rules) > 0 {
			lost, err := rules[0]()
			if err != nil {
				return err
			}
			f.lost += lost
			t.faultCounts[cmp.Or(f.name, f.What)] += uint64(lost)
			rules = rules[1:]
		}
		return nil
	}
	for _, each := range apply {
		rule, err := each()
		if err != nil {
			return nil, errors.Join(err, heal())
		}
		rules = append(rules, rule)
	}
	f.release = t.deferFree("a fault", heal)
	return f, nil
}

// breakable are the providers with devices that can be broken: that of a role, or of all roles.
func (t *Testbed) breakable(of *Role) []*rdmacore.Provider {
	if of != nil {
		return []*rdmacore.Provider{of.provider}
	}
	var found []*rdmacore.Provider
	for _, role := range t.roles {
		if role.provider.CanFault() && !slices.Contains(found, role.provider) {
			found = append(found, role.provider)
		}
	}
	if found == nil {
		return []*rdmacore.Provider{t.providers.First()} // its error has the reason
	}
	return found
}

// Faults lists how often each fault was applied that is healed by now, those of one name together.
func (t *Testbed) Faults() []record.Fault {
	var list []record.Fault
	for _, name := range slices.Sorted(maps.Keys(t.faultCounts)) {
		list = append(list, record.Fault{Name: name, Count: t.faultCounts[name]})
	}
	return list
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

// Heal ends the fault and returns how many messages it affected, or how many ids got its event.
func (f *Fault) Heal() (lost int, err error) {
	if f.release.done {
		return 0, &Failure{What: fmt.Sprintf("the fault %q is healed already", f.name)}
	}
	if err = f.release.freeNow(); err == nil && f.repair != nil {
		err = f.repair()
	}
	return f.lost, err
}

// RemoveDevice removes the device of a role, or of all roles on providers that can lose it.
func (t *Testbed) RemoveDevice(of *Role) (*Fault, error) {
	by := t.breakable(of)
	f, err := t.newFault(rdmacore.Fault{Action: rdmacore.FaultRemoveDevice}, by...)
	if err == nil {
		f.repair, f.What = func() error { return t.reopenDevices(by) }, "the device is removed"
	}
	return f, err
}

// ChangeAddress gives the network interface of a role, or of all roles, another hardware address.
func (t *Testbed) ChangeAddress(of *Role) (*Fault, error) {
	f, err := t.newFault(rdmacore.Fault{Action: rdmacore.FaultChangeAddress}, t.breakable(of)...)
	if err == nil {
		f.What = "the address is changed"
	}
	return f, err
}

// reopenDevices gives the roles of providers what they had at their beginning, on the device that has returned. It is
// a new device, and objects of the old one cannot be used any more.
func (t *Testbed) reopenDevices(of []*rdmacore.Provider) error {
	for _, role := range t.roles {
		if role.dead || !slices.Contains(of, role.provider) {
			continue
		}
		if err := role.reopen(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Role) reopen() error {
	device, err := Device(r.provider, r.device.Name())
	if err != nil {
		return err
	}
	r.moveTo(device)
	if r.executable() != nil {
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
