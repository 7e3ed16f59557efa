package testbed

import (
	"rdmarun/rdmacore"
)

// Reach notes where datagrams of the endpoint go from now on, as an event told.
func (e *Endpoint) Reach(peer *rdmacore.UDParam) {
	e.Datagrams, e.handle = peer, nil // the old handle lives to the end of the case: requests may be under way
}

// AddressHandle is the handle of where the datagrams go, of that protection domain.
func (e *Endpoint) AddressHandle(pd *rdmacore.PD) (*rdmacore.AH, error) {
	if e.handle != nil {
		return e.handle, nil
	}
	handle, err := e.Role.NewHandle(func() (*rdmacore.AH, error) { return pd.CreateAH(e.Datagrams.AH) })
	if err != nil {
		return nil, err
	}
	e.handle = handle.Native()
	return e.handle, nil
}
