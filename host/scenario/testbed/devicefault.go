package testbed

import (
	"rdmarun/rdmacore"
)

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
