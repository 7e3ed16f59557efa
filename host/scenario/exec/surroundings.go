package exec

import (
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/environment"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// surroundings are the values of plan.Surroundings.
func surroundings(provider *rdmacore.Provider, c *compile.Case) (expression.Env, error) {
	device, err := deviceOf(provider, c)
	if err != nil {
		return nil, err
	}
	attr, err := device.Attr()
	if err != nil {
		return nil, err
	}
	ports, err := device.Ports()
	if err != nil {
		return nil, err
	}
	iwarp, roce := device.IWARP(), false
	for _, port := range ports {
		roce = roce || port.LinkLayer == rdmacore.LinkLayerEthernet && !iwarp
	}
	name, soft := device.Name(), provider.Name() == "soft"
	guests := make(map[string]any)
	for _, role := range c.Roles {
		if role.Guest != nil {
			guests[role.Written()] = role.Guest.Missing == ""
		}
	}
	distinct, err := testbed.DistinctRoles(provider, c.Roles)
	if err != nil {
		distinct = testbed.Distinct{} // the lab will say what is missing
	}
	env := expression.Env{
		"provider":  map[string]any{"name": provider.Name(), "soft": soft, "verbs": !soft},
		"clock":     map[string]any{"virtual": provider.Clock().Virtual()},
		"transport": map[string]any{"ib": !iwarp, "roce": roce, "iwarp": iwarp},
		"device": map[string]any{
			"name": name, "atomic": attr.Atomic, "srq": attr.MaxSRQ > 0, "mw": attr.MaxMW > 0, "timestamps": attr.CompletionTimestampMask != 0,
			"flush": attr.Can(rdmacore.CapFlushGlobal), "flush_persistent": attr.Can(rdmacore.CapFlushPersistent), "atomic_write": attr.Can(rdmacore.CapAtomicWrite),
			"max_qp_rd_atom": attr.MaxQPRdAtom, "max_qp_wr": attr.MaxQPWR, "max_sge": attr.MaxSGE,
		},
		"driver": environment.Driver(provider.Name(), name),
		"fault":  map[string]any{"link": provider.CanFault(), "cm": provider.CanFault(), "data": provider.CanFault(), "device": provider.CanFault()},
		"guest":  guests,
		"roles": map[string]any{
			"distinct_hosts": distinct.Hosts, "distinct_devices": distinct.Devices, "distinct_addresses": distinct.Addresses,
		},
	}
	for _, constant := range c.Constants {
		if _, taken := env[constant.Name]; !taken {
			env[constant.Name] = constant.Value
		}
	}
	return env, nil
}

// deviceOf is the device of the case's first role, or the provider's default.
func deviceOf(provider *rdmacore.Provider, c *compile.Case) (*rdmacore.Device, error) {
	if len(c.Roles) > 0 && c.Roles[0].Device != "" {
		devices, err := provider.Devices()
		if err != nil {
			return nil, err
		}
		for _, device := range devices {
			if device.Name() == c.Roles[0].Device {
				return device, nil
			}
		}
	}
	return provider.DefaultDevice()
}
