package exec

import (
	"fmt"
	"os"
	"strings"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/environment"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// SkipReason tells, without running it, why a case would be skipped on a provider; "" when it would run.
func SkipReason(provider *rdmacore.Provider, c *compile.Case) (string, error) {
	if !conditional(c) {
		return "", nil
	}
	env, err := surroundings(provider, c)
	if err != nil {
		return "", err
	}
	return skipReason(provider, c, env)
}

// conditional tells whether a case may be skipped at all.
func conditional(c *compile.Case) bool {
	return len(c.Needs)+len(c.Requires) > 0 || c.Provider() != "" || needsHosts(c.Roles) != "" || hugeBytes(c.Roles) != nil
}

// capabilities are what verbs need of devices and expressions know as device.NAME, in words.
var capabilities = map[string]string{
	verb.CanAtomic: "atomic operations", verb.CanShare: "shared receive queues", verb.CanWindow: "memory windows",
	verb.CanStamp: "time stamps of completions",
}

// skipReason says why a case cannot run, "" when it can.
func skipReason(provider *rdmacore.Provider, c *compile.Case, env expression.Env) (string, error) {
	for _, reason := range []string{otherProvider(provider, c), tooFewHosts(c), tooFewHugePages(c)} {
		if reason != "" {
			return reason, nil
		}
	}
	for _, need := range c.Needs {
		if need == verb.CanFault && !provider.CanFault() {
			return fmt.Sprintf("it needs %s, and provider %s loses nothing on purpose (soft does)", need, provider.Name()), nil
		}
		if need == verb.CanFaultDevice && !provider.CanFault() {
			return fmt.Sprintf("it needs %s, and no device of provider %s goes away on purpose (that of soft does)", need, provider.Name()), nil
		}
		if need == verb.CanCount && !testbed.HasCounters(provider, os.DirFS("/"), c.Roles) {
			return fmt.Sprintf("it needs %s, and the kernel counts for no device of provider %s that a role is on", need, provider.Name()), nil
		}
		what, ofDevice := capabilities[need]
		if device, _ := env["device"].(map[string]any); ofDevice && device[strings.TrimPrefix(need, "device.")] != true {
			return fmt.Sprintf("it needs %s, and device %s has no %s", need, device["name"], what), nil
		}
	}
	for _, requirement := range c.Requires {
		holds, err := requirement.Holds(env)
		if err != nil {
			return "", fmt.Errorf("requires %s: %w", requirement.Text, err)
		}
		if !holds {
			return fmt.Sprintf("it requires %s%s", requirement.Text, because(requirement, c, provider, env)), nil
		}
	}
	return "", nil
}

// ofProvider are the surroundings that another provider may have.
var ofProvider = []string{"provider", "driver", "device", "transport", "fault", "clock"}

// because adds what is there instead of what is required.
func because(requirement *compile.Requirement, c *compile.Case, provider *rdmacore.Provider, env expression.Env) string {
	for _, role := range c.Roles {
		if role.Guest != nil && role.Guest.Missing != "" && strings.Contains(requirement.Text, "guest."+role.Written()) {
			return ": " + role.Guest.Missing
		}
	}
	found := strings.Join(requirement.Found(env), ", ")
	ofThis := requirement.Mentions(ofProvider...)
	switch {
	case found != "" && ofThis:
		return fmt.Sprintf(", and %s (provider %s)", found, provider.Name())
	case found != "":
		return ", and " + found
	case ofThis:
		return fmt.Sprintf(", and this is provider %s", provider.Name())
	}
	return ""
}

// otherProvider is the reason of a case whose matrix speaks of another provider.
func otherProvider(provider *rdmacore.Provider, c *compile.Case) string {
	wanted := c.Provider()
	if wanted == "" || wanted == provider.Name() {
		return ""
	}
	return fmt.Sprintf("its matrix has provider=%s, and this is provider %s", wanted, provider.Name())
}

// needsHosts is a counted role whose instances want hosts of their own; "" when there is none.
func needsHosts(roles []testbed.RoleConfig) string {
	for _, role := range roles {
		if role.Spread && role.Index > 0 {
			return role.Group
		}
	}
	return ""
}

func tooFewHosts(c *compile.Case) string {
	group := needsHosts(c.Roles)
	if group == "" {
		return ""
	}
	return fmt.Sprintf("role %s has place: {spread: host}, and one process on one host drives all of its instances", group)
}

// hugeBytes are the sizes of the buffers in huge pages.
func hugeBytes(roles []testbed.RoleConfig) (sizes []int) {
	for _, role := range roles {
		for _, buffer := range role.Buffers {
			if buffer.Backing == rdmacore.BackingHuge {
				sizes = append(sizes, buffer.Size)
			}
		}
	}
	return sizes
}

func tooFewHugePages(c *compile.Case) string {
	sizes := hugeBytes(c.Roles)
	if sizes == nil {
		return ""
	}
	pages, err := rdmacore.HugePages()
	if err != nil {
		return fmt.Sprintf("its buffers want huge pages: %v", err)
	}
	need := 0
	for _, size := range sizes {
		need += (size + pages.Size - 1) / pages.Size
	}
	if need <= pages.Free {
		return ""
	}
	return fmt.Sprintf("its buffers need %d huge pages of %d KiB, and %d are free (/proc/sys/vm/nr_hugepages)", need, pages.Size>>10, pages.Free)
}

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
		distinct = testbed.Distinct{} // the testbed will say what is missing
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
