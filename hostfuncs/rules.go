package hostfuncs

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"rdmarun/rdmacore"
)

// Rules restrict the capabilities of the guest.  nil allows everything, an empty list nothing. A call that they do not
// allow returns -EPERM.
type Rules struct {
	// Bind are the addresses that the guest may listen on and connect from, Connect those that it may connect and send
	// to.
	Bind, Connect []AddressRule
	// Devices are names of those that it may open and make objects on.
	Devices []string
}

// AddressRule is a set of addresses and ports.
type AddressRule struct {
	prefix      netip.Prefix // the zero one: any address
	first, last uint16
}

// addressForms are how rules are written.
const addressForms = "192.0.2.1:7471, 10.0.0.0/8:7000-7999, [::1]:*, *:7471"

// ParseAddressRule reads a rule.
func ParseAddressRule(text string) (rule AddressRule, err error) {
	wrong := func(why string) (AddressRule, error) {
		return AddressRule{}, fmt.Errorf("%q is not a rule for addresses: %s; such are %s", text, why, addressForms)
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 || strings.HasSuffix(text, "]") {
		return wrong("a port is missing")
	}
	host, ports := text[:at], text[at+1:]
	if inner, is := strings.CutPrefix(host, "["); is {
		if inner, is = strings.CutSuffix(inner, "]"); !is {
			return wrong("a bracket is missing")
		}
		host = inner
	} else if strings.Contains(host, ":") {
		return wrong("write an IPv6 address in brackets")
	}
	if host != "*" {
		if !strings.Contains(host, "/") {
			ip, err := netip.ParseAddr(host)
			if err != nil || ip.Zone() != "" {
				return wrong(fmt.Sprintf("%q is not an IP address", host))
			}
			rule.prefix = netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())
		} else if rule.prefix, err = netip.ParsePrefix(host); err != nil {
			return wrong(fmt.Sprintf("%q is not a prefix of IP addresses", host))
		}
	}
	if ports == "*" {
		rule.last = 1<<16 - 1
		return rule, nil
	}
	first, last, several := strings.Cut(ports, "-")
	if !several {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, wrongLast := strconv.ParseUint(last, 10, 16)
	if err != nil || wrongLast != nil || from == 0 || from > to {
		return wrong(fmt.Sprintf("%q is no port and no range of ports", ports))
	}
	rule.first, rule.last = uint16(from), uint16(to)
	return rule, nil
}

func (r AddressRule) hasPort(port uint16) bool { return r.first <= port && port <= r.last }

// has reports whether an address is one of the rule's.  The address for any, and none, are of rules alone that are for
// any.
func (r AddressRule) has(ip netip.Addr) bool {
	if !r.prefix.IsValid() {
		return true
	}
	ip = ip.Unmap().WithZone("")
	return ip.IsValid() && !(ip.IsUnspecified() && r.prefix.Bits() > 0) && r.prefix.Contains(ip)
}

// refusedBy is the refusal of what no rule lets the guest do, with the rule that it lacks.
func refusedBy(what, key, missing string) error {
	return &refusal{
		syscall.EPERM,
		fmt.Sprintf("this guest may not %s; the rule that is missing: allow: {%s: [%q]}", what, key, missing),
	}
}

// written is an address as a rule has it.
func written(at netip.AddrPort) string {
	ip, port := at.Addr().Unmap().WithZone(""), strconv.Itoa(int(at.Port()))
	if at.Port() == 0 {
		port = "*"
	}
	switch {
	case !ip.IsValid() || ip.IsUnspecified():
		return "*:" + port
	case ip.Is6():
		return "[" + ip.String() + "]:" + port
	}
	return ip.String() + ":" + port
}

// mayBind returns an error if the guest may not have an address as its own; port 0 is any.
func (i *Instance) mayBind(at netip.AddrPort) error {
	if i.rules.Bind == nil ||
		slices.ContainsFunc(i.rules.Bind, func(r AddressRule) bool {
			return r.has(at.Addr()) && r.hasPort(at.Port())
		}) {
		return nil
	}
	return refusedBy("bind itself to "+written(at), "bind", written(at))
}

// mayComeFrom is mayBind for connecting: the kernel's choice of a port needs no rule.
func (i *Instance) mayComeFrom(at netip.AddrPort) error {
	if at.Port() == 0 {
		return nil
	}
	return i.mayBind(at)
}

// mayConnect returns an error if the guest may not connect to an address.
func (i *Instance) mayConnect(to netip.AddrPort) error {
	if i.rules.Connect == nil ||
		slices.ContainsFunc(i.rules.Connect, func(r AddressRule) bool {
			return r.has(to.Addr()) && r.hasPort(to.Port())
		}) {
		return nil
	}
	return refusedBy("connect to "+written(to), "connect", written(to))
}

// mayLookUp returns an error if the guest may not look up a name. A guest that may connect nowhere may not query name
// servers either, because they carry the query to others.
func (i *Instance) mayLookUp(node string) error {
	if i.rules.Connect == nil || len(i.rules.Connect) > 0 || node == "" {
		return nil
	}
	if _, err := netip.ParseAddr(node); err == nil {
		return nil
	}
	return refusedBy(fmt.Sprintf("look up the name %.100q", node), "connect", "*:*")
}

// maySend returns an error if the guest may not send to an address, or a group, neither of which has a port.
func (i *Instance) maySend(to netip.Addr) error {
	if i.rules.Connect == nil ||
		to.IsValid() && slices.ContainsFunc(i.rules.Connect, func(r AddressRule) bool { return r.has(to) }) {
		return nil
	}
	at := netip.AddrPortFrom(to, 0)
	return refusedBy("send to "+written(at), "connect", written(at))
}

// maySendBy is maySend for the destination of an address vector; one without a GID is of a subnet that no rule has.
func (i *Instance) maySendBy(attr rdmacore.AHAttr) error {
	if !attr.IsGlobal {
		return i.maySend(netip.Addr{})
	}
	return i.maySend(attr.DGID)
}

// mayOpen returns an error if the guest may not use a device.
func (i *Instance) mayOpen(device *rdmacore.Device) error {
	if i.rules.Devices == nil || slices.Contains(i.rules.Devices, device.Name()) {
		return nil
	}
	return refusedBy("use the device "+device.Name(), "devices", device.Name())
}
