package testbed

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"rdmarun/rdmacore"
)

// Role is one party of a scenario.
type Role struct {
	Name string
	// Group and Index are those of its RoleConfig.
	Group    string
	Index    int
	testbed  *Testbed
	provider *rdmacore.Provider
	device   *rdmacore.Device
	former   []*rdmacore.Device // that were removed, the oldest first
	address  netip.Addr
	cpus     []int
	// count reads the counters of the role's port; began are their values at the beginning.
	count     func() counters
	began     counters
	channel   *rdmacore.EventChannel // nil for a guest, which has its own
	pd        *rdmacore.PD
	buffers   map[string]*Buffer
	endpoints map[string]*Endpoint
	objects   map[objectName]named
	holding   bool
	held      []*rdmacore.Event // read and not acknowledged, the oldest first
	// waits end the waits for events of the device, in the order of their beginnings.
	waits []*context.CancelFunc
	// living are the endpoints that are not destroyed, in the order of their making, also those without a name.
	living []*Endpoint
	guest  *Guest
	dead   bool
}

func (t *Testbed) newRole(config RoleConfig, index int) (*Role, error) {
	r := &Role{
		Name:      config.Name,
		Group:     config.Group,
		Index:     config.Index,
		testbed:   t,
		provider:  t.providers.Of(config.Name),
		buffers:   make(map[string]*Buffer),
		endpoints: make(map[string]*Endpoint),
		objects:   make(map[objectName]named),
	}
	var err error
	if r.device, err = Device(r.provider, config.Device); err != nil {
		return nil, err
	}
	if r.address, err = config.roleAddress(r.provider, r.device, index); err != nil {
		return nil, err
	}
	if r.cpus, err = config.CPUs.resolve(os.DirFS("/"), r.device); err != nil {
		return nil, err
	}
	r.count = func() counters { return readCounters(os.DirFS("/"), r.device, config.counterPort()) }
	r.began = r.count()
	if config.Guest != nil {
		r.guest = &Guest{role: r, config: *config.Guest}
		return r, nil
	}
	if r.channel, err = r.provider.CreateEventChannel(); err != nil {
		return nil, err
	}
	r.deferFree("event channel", r.channel.Close)
	if r.pd, err = r.device.AllocPD(); err != nil {
		return nil, err
	}
	r.deferFree("PD", r.pd.Dealloc)
	for _, bufferConfig := range config.Buffers {
		buffer, err := r.newBuffer(bufferConfig)
		if err != nil {
			return nil, fmt.Errorf("buffer %s: %w", bufferConfig.Name, err)
		}
		r.buffers[bufferConfig.Name] = buffer
	}
	return r, nil
}

// Address is the IP address by which rdma_cm reaches the role's device.
func (r *Role) Address() netip.Addr { return r.address }

// CPUs are where the role's native threads and its guest run; none: anywhere.
func (r *Role) CPUs() []int { return r.cpus }

// Provider is what the role is on.
func (r *Role) Provider() *rdmacore.Provider { return r.provider }

// Device is the role's device.
func (r *Role) Device() *rdmacore.Device { return r.device }

// Channel is the role's event channel; nil for a guest.
func (r *Role) Channel() *rdmacore.EventChannel { return r.channel }

// PD is the protection domain of the role's buffers and queue pairs; nil for a guest.
func (r *Role) PD() *rdmacore.PD { return r.pd }

// Testbed is what the role is part of.
func (r *Role) Testbed() *Testbed { return r.testbed }

// Guest is the role's guest, nil for a role that steps drive.
func (r *Role) Guest() *Guest { return r.guest }

// Buffer finds a buffer of the role.
func (r *Role) Buffer(name string) (*Buffer, error) {
	if err := r.alive(); err != nil {
		return nil, err
	}
	if buffer := r.buffers[name]; buffer != nil {
		return buffer, nil
	}
	return nil, &Failure{What: fmt.Sprintf("role %s has no buffer %q", r.Name, name)}
}

// Endpoint finds an endpoint by the name that a step's `as` gave it.
func (r *Role) Endpoint(name string) (*Endpoint, error) {
	if err := r.alive(); err != nil {
		return nil, err
	}
	endpoint := r.endpoints[name]
	switch {
	case endpoint == nil:
		return nil, &Failure{
			What: fmt.Sprintf("role %s has no endpoint %q yet", r.Name, name),
			Hint: "the step that makes it (create_ep, or wait_event for a CONNECT_REQUEST) did not run",
		}
	case endpoint.destroyed:
		return nil, &Failure{What: fmt.Sprintf("endpoint %q of role %s is destroyed", name, r.Name), Errno: syscall.EBADF}
	}
	return endpoint, nil
}

// OnlyEndpoint is the endpoint meant by a step that names none: the one with a queue pair.
func (r *Role) OnlyEndpoint() (*Endpoint, error) {
	var found *Endpoint
	if err := r.alive(); err != nil {
		return nil, err
	}
	for _, endpoint := range r.living {
		if endpoint.id.QP() == nil {
			continue
		}
		if found != nil {
			return nil, &Failure{
				What: fmt.Sprintf("role %s has several endpoints with a queue pair", r.Name),
				Hint: fmt.Sprintf("say which: ep: %s, or ep: %s", found.Name, endpoint.Name),
			}
		}
		found = endpoint
	}
	if found == nil {
		return nil, &Failure{
			What: fmt.Sprintf("role %s has no endpoint with a queue pair", r.Name),
			Hint: "create_ep makes one for a client; a server has one after wait_event for a CONNECT_REQUEST",
		}
	}
	return found, nil
}

// Endpoints are those that live, in the order of their making.
func (r *Role) Endpoints() []*Endpoint { return r.living }

// Buffers are the role's buffers, in no particular order.
func (r *Role) Buffers() []*Buffer { return slices.Collect(maps.Values(r.buffers)) }
