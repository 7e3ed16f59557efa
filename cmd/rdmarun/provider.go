package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
	surroundings "rdmarun/host/scenario/environment"
	"rdmarun/rdmacore"
)

const (
	// autoProvider stands for verbs on a machine that has an active device, and for soft on any other.
	autoProvider = "auto"

	providerUsage = "provider to run on (soft, verbs, auto: verbs where a device is active, else soft)"
)

// registerProvider registers --provider; more are values in addition to the names of providers.
func registerProvider(command *cobra.Command, value *string, otherwise, usage string, more ...string) {
	command.Flags().StringVarP(value, "provider", "P", otherwise, usage)
	completeFlag(
		command, "provider",
		cobra.FixedCompletions(append(rdmacore.Providers(), more...), cobra.ShellCompDirectiveNoFileComp),
	)
}

// registerLink registers --link, which is otherwise the link of that name.
func registerLink(command *cobra.Command, otherwise string) *formatFlag {
	link := newFormatFlag(rdmacore.Links()...)
	link.value = otherwise
	command.Flags().Var(
		link, "link",
		"how soft carries messages: whole (local), in packets of the path MTU (packets), or in packets through UDP "+
			"sockets (udp)",
	)
	completeFlag(command, "link", cobra.FixedCompletions(link.choices, cobra.ShellCompDirectiveNoFileComp))
	return link
}

// legalFlag is --legal: what soft chooses, or nothing.
type legalFlag struct{ rdmacore.Legal }

func (f *legalFlag) Type() string { return "SEED" }

// Set reads a seed, or a seed and names of choices.
func (f *legalFlag) Set(text string) (err error) {
	f.Legal, err = rdmacore.ParseLegal(text)
	return err
}

// registerLegal registers --legal.
func registerLegal(command *cobra.Command, legal *legalFlag) {
	command.Flags().Var(
		legal, "legal",
		"have soft behave now and then as a device may and rarely does: 7, or 7:write_late,poll_short=2 for some "+
			"ways and rates (explain legal)",
	)
	completeFlag(command, "legal", cobra.NoFileCompletions)
}

// resolveProvider returns the provider for a name, and rejects other names.
func (a *app) resolveProvider(name string) (string, error) {
	if name == autoProvider {
		chosen, why := chooseProvider(openVerbs)
		fmt.Fprintf(a.stderr, "rdmarun: --provider auto: %s, %s\n", chosen, why)
		return chosen, nil
	}
	return name, checkProvider(name, autoProvider)
}

// checkProvider refuses names that are neither a provider's nor one of more.
func checkProvider(name string, more ...string) error {
	if err := oneOf(name, append(rdmacore.Providers(), more...)); err != nil {
		return usageError("--provider: %w", err)
	}
	return nil
}

// openVerbs names the device that verbs would use.
func openVerbs() (device string, err error) {
	provider, err := rdmacore.Open(rdmacore.Verbs)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	found, err := provider.DefaultDevice()
	if err != nil {
		return "", err
	}
	if _, err := found.Address(); err != nil {
		return "", err
	}
	return found.Name(), nil
}

// chooseProvider takes verbs if a device can be used, and returns why.
func chooseProvider(verbs func() (device string, err error)) (name, why string) {
	device, err := verbs()
	if err != nil {
		return rdmacore.Soft, fmt.Sprintf("since verbs cannot be used: %v", err)
	}
	return rdmacore.Verbs, "since " + device + " is active"
}

// openProvider opens a device's provider for the whole run. soft is opened for each case, so that no case sees what
// another has left, and several can run at once.
func (a *app) openProvider(name string, config *scenario.RunConfig) (closing func() error, err error) {
	if name == rdmacore.Soft {
		return func() error { return nil }, nil
	}
	config.Provider, err = rdmacore.Open(name)
	if err != nil {
		return nil, withExit(exitEnvironment, err)
	}
	if err := hasDevice(config.Provider); err != nil {
		return nil, errors.Join(err, config.Provider.Close())
	}
	return config.Provider.Close, nil
}

// hasDevice reports once, before the first case, what each case would report: there is nothing to run on.
func hasDevice(provider *rdmacore.Provider) error {
	devices, err := provider.Devices()
	if err == nil && len(devices) > 0 {
		return nil
	}
	if err == nil {
		_, err = provider.DefaultDevice() // has the remedy
	}
	return withHint(withExit(exitEnvironment, fmt.Errorf("--provider %s: %w", provider.Name(), err)),
		"\"rdmarun doctor\" says why, and what to type; --provider soft needs no device")
}

// environment has the facts about the surroundings for a comparison of two runs.
func (a *app) environment() map[string]string {
	build := buildVersion()
	facts := surroundings.Machine(os.DirFS("/"))
	facts["version"], facts["arch"], facts["cpus"] = build.Version, build.Arch, strconv.Itoa(runtime.NumCPU())
	if build.Commit != "" {
		facts["commit"] = build.Commit
	}
	if host, err := os.Hostname(); err == nil {
		facts["host"] = host
	}
	return facts
}
