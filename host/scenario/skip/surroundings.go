package skip

import (
	"fmt"
	"maps"
	"slices"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/environment"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// Surroundings returns the values of compile.Surroundings. They are those of the device of the case's first role, or
// the provider's default, and of the roles that the conditions mention.
func Surroundings(on testbed.Providers, c *compile.Case, conditions ...*compile.Requirement) (expression.Env, error) {
	provider := on.First()
	device, err := provider.DefaultDevice()
	if len(c.Roles) > 0 && c.Roles[0].Device != "" {
		if named, unknown := testbed.Device(provider, c.Roles[0].Device); unknown == nil {
			device, err = named, nil
		}
	}
	if err != nil {
		return nil, err
	}
	facts, err := deviceFacts(device)
	if err != nil {
		return nil, err
	}
	ports, err := device.Ports()
	if err != nil {
		return nil, err
	}
	env, err := mentionedRoles(on, c, conditions)
	if err != nil {
		return nil, err
	}
	iwarp, faults, packets := device.IWARP(), false, false
	for _, each := range on.All(c.Roles) {
		faults, packets = faults || each.CanFault(), packets || each.SendsPackets()
	}
	roce := !iwarp &&
		slices.ContainsFunc(ports, func(port rdmacore.Port) bool {
			return port.LinkLayer == rdmacore.LinkLayerEthernet
		})
	guests, programs := make(map[string]any), make(map[string]any)
	for _, role := range c.Roles {
		if role.Guest != nil {
			guests[role.Written()] = role.Guest.Missing == ""
		}
		if role.Program != nil {
			programs[role.Written()] = missingProgram(on, role) == ""
		}
	}
	for _, role := range c.Elsewhere { // the process that plays it decides
		if role.Guest != nil {
			guests[role.Written()] = true
		}
		if role.Program != nil {
			programs[role.Written()] = true
		}
	}
	places, err := testbed.Places(on, c.Roles)
	if err != nil {
		places = make([]testbed.Place, 2) // the testbed reports what is missing
	}
	maps.Copy(env, expression.Env{
		"provider":  providerFacts(provider),
		"clock":     map[string]any{"virtual": provider.Clock().Virtual()},
		"transport": map[string]any{"ib": !iwarp, "roce": roce, "iwarp": iwarp},
		"device":    facts,
		"driver":    environment.Driver(provider.Name(), device.Name()),
		"fault":     map[string]any{"link": faults, "cm": faults, "data": faults, "device": faults, "packet": packets},
		"guest":     guests,
		"program":   programs,
		"roles":     testbed.Distinct(places),
	})
	for _, constant := range c.Constants {
		if _, taken := env[constant.Name]; !taken {
			env[constant.Name] = constant.Value
		}
	}
	return env, nil
}

// missingProgram is why the program of a role cannot run here; "" when it can.
func missingProgram(on testbed.Providers, role testbed.RoleConfig) string {
	if _, err := role.Program.Find(role.Program.Program, on.Of(role.Name).Name()); err != nil {
		return err.Error()
	}
	return ""
}

// mentionedRoles returns the values of the roles that conditions mention.
func mentionedRoles(on testbed.Providers, c *compile.Case, conditions []*compile.Requirement) (expression.Env, error) {
	env := make(expression.Env)
	for _, role := range c.Roles {
		mentions := func(r *compile.Requirement) bool { return r.Mentions(role.Written()) }
		if !slices.ContainsFunc(conditions, mentions) {
			continue
		}
		device, err := testbed.Device(on.Of(role.Name), role.Device)
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", role.Name, err)
		}
		facts, err := deviceFacts(device)
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", role.Name, err)
		}
		object := map[string]any{"device": facts, "provider": providerFacts(on.Of(role.Name))}
		if role.Group == "" {
			env[role.Name] = object
		} else {
			list, _ := env[role.Group].([]any)
			env[role.Group] = append(list, object)
		}
	}
	return env, nil
}

// providerFacts returns the values of a provider in expressions.
func providerFacts(provider *rdmacore.Provider) map[string]any {
	soft := provider.Name() == rdmacore.Soft
	return map[string]any{"name": provider.Name(), "soft": soft, "verbs": !soft, "link": provider.Link()}
}

// deviceFacts returns the values of a device in expressions; package compile defines them.
func deviceFacts(device *rdmacore.Device) (map[string]any, error) {
	attr, err := device.Attr()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"name": device.Name(), "driver": environment.Driver(device.Provider().Name(), device.Name()),
		"iwarp": device.IWARP(), "atomic": attr.Atomic, "srq": attr.MaxSRQ > 0, "mw": attr.MaxMW > 0,
		"timestamps": attr.CompletionTimestampMask != 0, "flush": attr.Can(rdmacore.CapFlushGlobal),
		"flush_persistent": attr.Can(rdmacore.CapFlushPersistent), "atomic_write": attr.Can(rdmacore.CapAtomicWrite),
		"max_qp_rd_atom": attr.MaxQPRdAtom, "max_qp_init_rd_atom": attr.MaxQPInitRdAtom,
		"max_qp": attr.MaxQP, "max_qp_wr": attr.MaxQPWR, "max_sge": attr.MaxSGE, "max_cqe": attr.MaxCQE,
	}, nil
}

// RoleFacts returns the values of a role in expressions.
func RoleFacts(role *testbed.Role) (map[string]any, error) {
	device, err := deviceFacts(role.Device())
	if err != nil {
		return nil, fmt.Errorf("role %s: %w", role.Name, err)
	}
	object := map[string]any{
		"name": role.Name, "address": role.Address().String(), "device": device,
		"provider": providerFacts(role.Provider()),
	}
	if program := role.Program(); program != nil {
		object["port"] = int(program.Port())
	}
	for _, buffer := range role.Buffers() {
		object[buffer.Name] = buffer.View().Record()
	}
	object["counters"] = CounterFacts(role)
	return object, nil
}

// CounterFacts returns the counters of a role in expressions.
func CounterFacts(role *testbed.Role) map[string]any {
	counters := make(map[string]any)
	for name, value := range role.Counted() {
		counters[name] = int(value)
	}
	return counters
}
