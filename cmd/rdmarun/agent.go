package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
	"rdmarun/host/lab/agent"
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
				GuestCache: a.env[guest.CacheVariable], Warn: a.warn, Die: func() { os.Exit(int(exitEnvironment)) },
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
