package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/doctor"
	"rdmarun/host/guest"
	"rdmarun/host/lab"
	"rdmarun/host/lab/agent"
	"rdmarun/host/sandbox"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

const agentLong = `Play roles for controllers, "rdmarun run --lab" or "--nats", with the
rights of the user that it runs as. An agent opens no port. It runs only what its
controller sends: scenarios, and guests in their sandbox. It starts programs of the host
only if --allow names them.

With --stdio it serves one controller at the other end of standard input and output.
Controllers start such agents on the hosts of a lab themselves, by ssh or another
launcher. When its controller or the connection to it ends, the agent ends the run,
frees everything, and ends, too.

With --join it waits on a NATS server for controllers, under its name and labels. It
serves one run at a time, each in a process of its own. Any user of that server may
start runs here, so protect the server by a password, a key or a certificate.

--allow is what the owner of the host allows. The default is the providers soft and
verbs, guests, and measure (steps which send as much as they can). Programs of the host
are allowed by their absolute paths, program=/usr/bin/ib_*, and variables of their
environment by env=NAME. The controller chooses its arguments and files, so a shell, an
interpreter or a program that writes files by a flag allows everything.

--sandbox restricts the process that plays roles. "strict" leaves it a cache of guests,
the configuration, the system's libraries and devices, and rdmarun, which it starts to
compile guests. It needs no other file, because scenarios and guests arrive in memory.
With --join the process that waits has no guests. It keeps its credentials, and starts
restricted processes. Those read the configuration, so do not put a password in it.`

const agentExample = `  ssh HOST rdmarun agent --stdio    # what "rdmarun run --lab" does
  rdmarun agent --join nats://lab.example --creds lab.creds --name a --label rack=r1
  RDMARUN_JOIN=nats://lab:PASSWORD@lab.example rdmarun agent --allow soft,guests`

func newAgentCommand(a *app) *cobra.Command {
	stdio, allow, joining := false, []string(nil), joinFlags{}
	confined := newSandboxFlag(sandbox.Default, sandbox.Strict, sandbox.Off)
	command := &cobra.Command{
		Use:     "agent {--stdio | --join URL}",
		Short:   "Play roles on this host for controllers",
		Long:    agentLong,
		Example: agentExample,
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			for _, word := range allow {
				if err := lab.CheckAllow(word); err != nil {
					if !strings.Contains(word, "=") {
						err = oneOf(word, lab.Allowable())
					}
					return usageError("--allow: %w", err)
				}
			}
			switch {
			case stdio: // also where the configuration has a server
			case joining.nats.url != "":
				return joining.serve(command.Context(), a, allow, confined)
			default:
				return withHint(
					usageError("an agent needs a way to its controller"),
					"--stdio: standard input and output; --join URL: a NATS server",
				)
			}
			if err := confined.enterAgent(a, command); err != nil {
				return err
			}
			closing := func() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }
			err := agent.Serve(command.Context(), a.stdin, a.stdout, closing, agent.Config{
				Version: buildVersion().Version, Open: a.openProvider, Trace: traceGuests, Allow: allow,
				Environment: a.env,
				GuestCache:  confined.cache(a), GuestCompiler: guest.OwnCompiler(), Confine: confined.confine(a),
				Warn: a.warn, Examine: examineHost, Die: func() { os.Exit(int(exitEnvironment)) },
			})
			if err != nil {
				return withExit(exitEnvironment, err)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&stdio, "stdio", false, "speak with one controller over standard input and output")
	command.Flags().StringSliceVar(
		&allow, "allow", nil,
		"what controllers may use of this host: soft, verbs, guests, measure (default: all four), program=PATTERN",
	)
	completeFlag(command, "allow", cobra.FixedCompletions(lab.Allowable(), cobra.ShellCompDirectiveNoFileComp))
	joining.register(command)
	confined.register(command)
	return command
}

// examineHost looks at this host.
func examineHost(ctx context.Context, what lab.Look) lab.Examined {
	found := lab.Examined{Version: buildVersion().Version, Findings: doctor.Examine(ctx, thisMachine(""))}
	var options []rdmacore.Option
	if what.Provider == rdmacore.Soft {
		found.Findings = slices.DeleteFunc(found.Findings, func(f doctor.Finding) bool {
			return !slices.Contains([]string{"roce-port", "port-sharing", "soft"}, f.ID)
		})
		options = append(options, rdmacore.WithLink(rdmacore.LinkUDP))
	}
	provider, err := rdmacore.Open(what.Provider, options...)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	devices := what.Devices
	if len(devices) == 0 {
		devices = []string{""}
	}
	var failures []error
	for _, name := range devices {
		failures = append(failures, placeOf(provider, name, what, &found))
	}
	if err := errors.Join(append(failures, provider.Close())...); err != nil {
		found.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return found
}

// placeOf notes what a host's roles would be on: all its devices, and of the first how others reach it.
func placeOf(provider *rdmacore.Provider, name string, what lab.Look, found *lab.Examined) error {
	device, err := testbed.Device(provider, name)
	if err != nil {
		return err
	}
	place := testbed.RoleConfig{}
	if what.Address.IsValid() {
		place.GID = what.Address.String()
	} else if routed := agent.Routed(); what.Route && routed.IsValid() {
		place.GID = routed.String()
	}
	address, err := place.DeviceAddress(device)
	if err != nil {
		return err
	}
	if found.Device != "" {
		found.Device += "," + device.Name()
		return nil
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
