package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"rdmarun/host/doctor"
	"rdmarun/host/guest"
	"rdmarun/host/lab"
	"rdmarun/host/lab/agent"
	"rdmarun/rdmacore"
)

const agentLong = `Play roles for a controller, "rdmarun run --lab", at the other end of standard input and
output.  Controllers start agents on the hosts of a lab themselves, by ssh or another
launcher; nobody need call this.

An agent does what its controller sends and nothing else, with the rights of the user
that it runs as.  It opens no port.  When its controller ends, or the connection to it,
what runs is ended, everything is freed, and the agent ends, too.`

func newAgentCommand(a *app) *cobra.Command {
	stdio := false
	command := &cobra.Command{
		Use:     "agent --stdio",
		Short:   "Play roles on this host for a controller",
		Long:    agentLong,
		Example: "  ssh HOST rdmarun agent --stdio    # what `rdmarun run --lab` does",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !stdio {
				return withHint(usageError("an agent needs a way to its controller"), "--stdio: standard input and output")
			}
			closing := func() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }
			err := agent.Serve(command.Context(), a.stdin, a.stdout, closing, agent.Config{
				Version: buildVersion().Version, Open: a.openProvider,
				GuestCache: a.env[guest.CacheVariable], Warn: a.warn, Examine: examineHost, Die: func() { os.Exit(int(exitEnvironment)) },
			})
			if err != nil {
				return withExit(exitEnvironment, err)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&stdio, "stdio", false, "speak with the controller over standard input and output")
	return command
}

// examineHost looks at this host, on a provider.
func examineHost(ctx context.Context, name string) lab.Examined {
	found := lab.Examined{Version: buildVersion().Version, Findings: doctor.Examine(ctx, thisMachine(""))}
	var options []rdmacore.Option
	if name == softProvider {
		found.Findings = slices.DeleteFunc(found.Findings, func(f doctor.Finding) bool { return f.ID != "roce-port" && f.ID != "soft" })
		options = append(options, rdmacore.WithLink(rdmacore.LinkUDP))
	}
	provider, err := rdmacore.Open(name, options...)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	if err := errors.Join(placeOf(provider, &found), provider.Close()); err != nil {
		found.Error = err.Error()
	}
	return found
}

// placeOf notes what a host's roles would be on.
func placeOf(provider *rdmacore.Provider, found *lab.Examined) error {
	device, err := provider.DefaultDevice()
	if err != nil {
		return err
	}
	address, err := device.Address()
	if err != nil {
		return err
	}
	if address.IsLoopback() {
		if other := agent.Routed(); other.IsValid() {
			address = other
		}
	}
	found.Device, found.Address = device.Name(), address.String()
	ports, err := device.Ports()
	if err != nil {
		return err
	}
	for _, port := range ports {
		for _, gid := range port.GIDs {
			if gid.Address == address {
				found.GIDType, found.MTU = gid.Type, port.ActiveMTU
			}
		}
	}
	return nil
}
