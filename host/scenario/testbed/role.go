package testbed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
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
	// Labels are those of its RoleConfig.
	Labels map[string]string
	// Host is the name of the host that the role is on.
	Host string
	// count reads the counters of the role's port; began are their values at the beginning.
	count       func() counters
	began       counters
	countedPort int
	channel     *rdmacore.EventChannel // nil for a guest or a program, which has its own
	pd          *rdmacore.PD
	buffers     map[string]*Buffer
	endpoints   map[string]*Endpoint
	objects     map[objectName]named
	holding     bool
	held        []*rdmacore.Event // read and not acknowledged, the oldest first
	// waits end the waits for events of the device, in the order of their beginnings.
	waits []*context.CancelFunc
	// living are the endpoints that are not destroyed, in the order of their making, also those without a name.
	living  []*Endpoint
	guest   *Guest
	program *Program
	dead    bool
	// number is the role's among all of the case.
	number int
}

func (t *Testbed) newRole(config RoleConfig, index int) (*Role, error) {
	r := &Role{
		Name:      config.Name,
		Group:     config.Group,
		Index:     config.Index,
		Labels:    config.Labels,
		Host:      cmp.Or(config.Host, hostName()),
		testbed:   t,
		provider:  t.providers.Of(config.Name),
		buffers:   make(map[string]*Buffer),
		endpoints: make(map[string]*Endpoint),
		objects:   make(map[objectName]named),
		number:    index,
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
	r.countedPort = config.counterPort()
	r.count = func() counters { return readCounters(os.DirFS("/"), r.device, r.countedPort) }
	r.began = r.count()
	if config.Guest != nil {
		r.guest = &Guest{role: r, config: *config.Guest}
		return r, nil
	}
	if config.Program != nil {
		r.program = &Program{role: r, config: *config.Program}
		if r.program.port, err = freePort(r.address); err != nil {
			return nil, err
		}
		if r.provider.Name() == rdmacore.Soft { // the program does not use its device in this process
			names := r.began
			r.count = func() counters { return r.program.counted(names) }
			r.began = r.count()
		}
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

// Channel is the role's event channel; nil for a guest or a program.
func (r *Role) Channel() *rdmacore.EventChannel { return r.channel }

// PD is the protection domain of the role's buffers and queue pairs; nil for a guest or a program.
func (r *Role) PD() *rdmacore.PD { return r.pd }

// Guest is the role's guest; nil for a role that steps or a program play.
func (r *Role) Guest() *Guest { return r.guest }

// Program is the role's native program; nil for a role that steps or a guest play.
func (r *Role) Program() *Program { return r.program }

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
		return nil, &Failure{
			What: fmt.Sprintf("endpoint %q of role %s is destroyed", name, r.Name), Errno: syscall.EBADF,
		}
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

// Place is where a role runs: the node GUID of its device, its address, and the name of its host. The name is "" for
// the host of this process.
type Place struct {
	GUID    uint64
	Address netip.Addr
	Host    string
}

// Distinct has what roles at these places do not share, as expressions see it.
func Distinct(places []Place) map[string]any {
	guids, addresses, hosts := make(map[uint64]bool), make(map[netip.Addr]bool), make(map[string]bool)
	for _, each := range places {
		guids[each.GUID], addresses[each.Address], hosts[each.Host] = true, true, true
	}
	return map[string]any{
		"distinct_hosts": len(hosts) == len(places), "distinct_devices": len(guids) == len(places),
		"distinct_addresses": len(addresses) == len(places),
	}
}

// Places are where roles would run, driven by this process; an error says which cannot run at all.
func Places(providers Providers, configs []RoleConfig) (places []Place, err error) {
	for i, config := range configs {
		provider := providers.Of(config.Name)
		device, err := Device(provider, config.Device)
		if err != nil {
			return nil, err
		}
		address, err := config.roleAddress(provider, device, max(i, config.Position))
		if err != nil {
			return nil, err
		}
		places = append(places, Place{GUID: device.GUID(), Address: address})
	}
	return places, nil
}

// roleAddress is the address of the role with that index. On soft each role has one of its own, 127.0.0.1, 127.0.0.2
// and so on. So a link between two roles is a pair of addresses; the whole of 127.0.0.0/8 is the host's. A guest or a
// program creates its endpoints itself, and so has its device's address.
func (c RoleConfig) roleAddress(provider *rdmacore.Provider, device *rdmacore.Device, index int) (netip.Addr, error) {
	address, err := c.DeviceAddress(device)
	if err != nil || c.Guest != nil || c.Program != nil || provider.Name() != rdmacore.Soft || !address.Is4() ||
		!address.IsLoopback() {
		return address, err
	}
	raw := address.As4()
	last := int(raw[3]) + index
	above := int(raw[1])<<8 + int(raw[2]) + last/250
	raw[1], raw[2], raw[3] = byte(above>>8), byte(above), byte(last%250)
	return netip.AddrFrom4(raw), nil
}

// Device finds a device of the provider by its name; "" is the default.
func Device(provider *rdmacore.Provider, name string) (*rdmacore.Device, error) {
	if name == "" {
		return provider.DefaultDevice()
	}
	devices, err := provider.Devices()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(devices))
	for i, device := range devices {
		if names[i] = device.Name(); names[i] == name {
			return device, nil
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no device %q: provider %s has no device at all", name, provider.Name())
	}
	hint := ""
	if provider.Name() == rdmacore.Soft {
		hint = "; -P verbs runs on the devices of this machine"
	}
	return nil, fmt.Errorf("no device %q; provider %s has %s%s", name, provider.Name(), strings.Join(names, ", "), hint)
}

// DeviceAddress is the IP address by which rdma_cm reaches the port and GID of a role.  rdma_cm finds a
// device by the address of its network interface, so to choose an address is to choose the device.
func (c RoleConfig) DeviceAddress(device *rdmacore.Device) (netip.Addr, error) {
	if c.Port == 0 && c.GID == "" {
		return device.Address()
	}
	ports, err := device.Ports()
	if err != nil {
		return netip.Addr{}, err
	}
	var wanted []rdmacore.Port
	for _, port := range ports {
		if c.Port == 0 || port.Number == c.Port {
			wanted = append(wanted, port)
		}
	}
	if len(wanted) == 0 {
		return netip.Addr{}, fmt.Errorf("device %s has no port %d; it has %d", device.Name(), c.Port, len(ports))
	}
	if c.GID != "" {
		return c.addressOfGID(device, wanted)
	}
	if port := wanted[0]; port.State != rdmacore.PortActive {
		return netip.Addr{}, fmt.Errorf("port %d of %s is %s", port.Number, device.Name(), port.State)
	}
	return firstAddress(device, wanted[0])
}

// addressOfGID finds an entry of the GID tables by index or by address.
func (c RoleConfig) addressOfGID(device *rdmacore.Device, ports []rdmacore.Port) (netip.Addr, error) {
	index, notAnIndex := strconv.Atoi(c.GID)
	address, _ := netip.ParseAddr(c.GID)
	var known []string
	for _, port := range ports {
		if device.IWARP() && slices.Contains(port.Addresses(), address.Unmap()) {
			return address.Unmap(), nil // it is in no GID table
		}
		for _, gid := range port.GIDs {
			named := gid.Address
			if !named.IsValid() {
				named = gid.Raw
			}
			known = append(known, fmt.Sprintf("%d %s", gid.Index, named))
			switch {
			case notAnIndex == nil && gid.Index != index,
				notAnIndex != nil && gid.Raw != address && gid.Address != address.Unmap():
			case !gid.Address.IsValid():
				return netip.Addr{}, fmt.Errorf("GID %s of %s port %d is no IP address, and rdma_cm finds "+
					"devices by those",
					c.GID, device.Name(), port.Number)
			default:
				return gid.Address, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf(
		"device %s has no GID %s; it has %s", device.Name(), c.GID, strings.Join(known, ", ")+asleep(address),
	)
}

// asleep is how to bring up the network interface that has an address: while it is down, no device has that.
func asleep(address netip.Addr) string {
	interfaces, _ := net.Interfaces() // an error leaves no hint
	for _, each := range interfaces {
		addresses, _ := each.Addrs()
		for _, own := range addresses {
			prefix, err := netip.ParsePrefix(own.String())
			if err == nil && prefix.Addr().Unmap() == address.Unmap() && each.Flags&net.FlagUp == 0 {
				return fmt.Sprintf("; that is of %[1]s, which is down: ip link set %[1]s up", each.Name)
			}
		}
	}
	return ""
}

// firstAddress is the port's first IPv4 address, else its first IPv6 address that is not link-local.
func firstAddress(device *rdmacore.Device, port rdmacore.Port) (netip.Addr, error) {
	addresses := port.Addresses()
	routable := func(address netip.Addr) bool { return !address.IsLinkLocalUnicast() }
	for _, wanted := range []func(netip.Addr) bool{netip.Addr.Is4, routable} {
		if i := slices.IndexFunc(addresses, wanted); i >= 0 {
			return addresses[i], nil
		}
	}
	return netip.Addr{}, fmt.Errorf("port %d of %s has no IP address", port.Number, device.Name())
}
