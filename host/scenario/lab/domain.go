package lab

import (
	"fmt"
	"syscall"

	"rdmarun/rdmacore"
)

// Domain is a protection domain that a step made, beside that of the role's buffers.
type Domain struct {
	role    *Role
	pd      *rdmacore.PD
	release *free
}

// NewDomain makes a protection domain of the role's device.
func (r *Role) NewDomain() (*Domain, error) {
	pd, err := r.device.AllocPD()
	if err != nil {
		return nil, err
	}
	d := &Domain{role: r, pd: pd}
	d.release = r.later("PD", pd.Dealloc)
	return d, nil
}

// Bind gives the domain its name.
func (d *Domain) Bind(name string) { d.role.domains[name] = d }

// PD is the domain itself.
func (d *Domain) PD() *rdmacore.PD { return d.pd }

// Dealloc frees the domain, unless something still uses it.
func (d *Domain) Dealloc() error {
	err := d.pd.Dealloc()
	d.release.done = d.release.done || err == nil
	return err
}

// Domain finds a protection domain by the name that a step's `as` gave it.
func (r *Role) Domain(name string) (*Domain, error) {
	if err := r.alive(); err != nil {
		return nil, err
	}
	if d := r.domains[name]; d != nil {
		return d, nil
	}
	return nil, &Failure{What: fmt.Sprintf("role %s has no PD %q", r.Name, name), Hint: "the step alloc_pd did not run", Errno: syscall.EBADF}
}
