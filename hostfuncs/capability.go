package hostfuncs

import "strings"

// Capability is one thing that a guest may be allowed to do.  Each function belongs to one.
type Capability uint32

// Capabilities is a set of them.
type Capabilities = Capability

// The capabilities.
const (
	CapabilityBase   Capability = 1 << iota // version, errors, clock, log; not to be denied
	CapabilityDevice                        // look at devices and their addresses
	CapabilityCM                            // make and answer connections
	CapabilityMemory                        // register memory
	CapabilityWork                          // post work and poll completions
	CapabilitySync                          // meet the other roles of a run
)

var capabilityNames = []struct {
	capability Capability
	name       string
}{
	{CapabilityBase, "base"}, {CapabilityDevice, "device"}, {CapabilityCM, "cm"},
	{CapabilityMemory, "memory"}, {CapabilityWork, "work"}, {CapabilitySync, "sync"},
}

// ParseCapability finds a capability by its name, of those that can be denied.
func ParseCapability(name string) (Capability, bool) {
	for _, row := range capabilityNames {
		if row.name == name && row.capability != CapabilityBase {
			return row.capability, true
		}
	}
	return 0, false
}

// CapabilityNames are those of the capabilities that can be denied.
func CapabilityNames() []string {
	var names []string
	for _, row := range capabilityNames {
		if row.capability != CapabilityBase {
			names = append(names, row.name)
		}
	}
	return names
}

func (c Capability) String() string {
	var names []string
	for _, row := range capabilityNames {
		if c&row.capability != 0 {
			names = append(names, row.name)
		}
	}
	return strings.Join(names, "|")
}
