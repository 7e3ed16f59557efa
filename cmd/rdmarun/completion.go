package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
)

const completionLong = `Print a completion script for a shell.

  bash        source <(rdmarun completion bash)
  zsh         rdmarun completion zsh > "${fpath[1]}/_rdmarun"
  fish        rdmarun completion fish > ~/.config/fish/completions/rdmarun.fish
  powershell  rdmarun completion powershell | Out-String | Invoke-Expression`

func newCompletionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:                   "completion bash|zsh|fish|powershell",
		Short:                 "Print a completion script for a shell",
		Annotations:           configOptional,
		Long:                  completionLong,
		DisableFlagsInUseLine: true,
		ValidArgs:             shells,
		Args:                  wordArgument(true, shells...),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			default: // the one that wordArgument leaves
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
		},
	}
}

// completeCases checks the scenarios that a half-typed command line names, for completions from them.  Broken files are
// left out: a completion has no place for errors.
func (a *app) completeCases(args []string) []scenario.Scenario {
	paths, err := scenarioPaths(args)
	if err != nil {
		return nil
	}
	return scenario.Check(paths, scenario.Params{}).Scenarios
}

func (a *app) completeIDs(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	for _, s := range a.completeCases(args) {
		for _, c := range s.Compiled.Cases {
			if strings.HasPrefix(c.ID, toComplete) {
				ids = append(ids, cobra.CompletionWithDesc(c.ID, strings.Join(c.Tags, " ")))
			}
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeTags completes the last tag of an expression.
func (a *app) completeTags(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	begin := strings.LastIndexAny(toComplete, "!&|() ") + 1
	var known []string
	for _, s := range a.completeCases(args) {
		for _, c := range s.Compiled.Cases {
			for _, tag := range c.Tags {
				if strings.HasPrefix(tag, toComplete[begin:]) {
					known = append(known, toComplete[:begin]+tag)
				}
			}
		}
	}
	slices.Sort(known)
	return slices.Compact(known), cobra.ShellCompDirectiveNoFileComp
}

// completeParams offers the parameters of the scenarios, "count=" with the type and the value they have.
func (a *app) completeParams(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var known []string
	for _, s := range a.completeCases(args) {
		for _, name := range s.Compiled.Missing {
			known = append(known, cobra.CompletionWithDesc(name+"=", "needs a value"))
		}
		for _, p := range s.Compiled.Params {
			known = append(known, cobra.CompletionWithDesc(p.Name+"=", "is "+p.Text))
		}
	}
	slices.Sort(known)
	known = slices.DeleteFunc(slices.Compact(known), func(s string) bool { return !strings.HasPrefix(s, toComplete) })
	return known, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeDevices offers the roles of the scenarios, then the devices there are: "server=mlx5_0:1".
func (a *app) completeDevices(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return a.completePlaces(args, toComplete, func(device deviceRow, port portRow) []string {
		return []string{
			cobra.CompletionWithDesc(fmt.Sprintf("%s:%d", device.Name, port.Number), device.Provider+", "+port.State),
		}
	})
}

// completeGIDs offers the roles, then the addresses of the devices' ports.
func (a *app) completeGIDs(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return a.completePlaces(args, toComplete, func(device deviceRow, port portRow) []string {
		var known []string
		for _, gid := range port.GIDs {
			if gid.Address != "" {
				known = append(
					known,
					cobra.CompletionWithDesc(
						gid.Address,
						fmt.Sprintf("%s port %d index %d, %s", device.Name, port.Number, gid.Index, gid.Type),
					),
				)
			}
		}
		return known
	})
}

// completePlaces completes ROLE=WORD, with the words of every port.
func (a *app) completePlaces(
	args []string, toComplete string, words func(deviceRow, portRow) []string,
) ([]string, cobra.ShellCompDirective) {
	var known []string
	role, _, hasRole := strings.Cut(toComplete, "=")
	if hasRole {
		role += "="
	} else {
		role = ""
		for _, s := range a.completeCases(args) {
			for _, r := range s.Compiled.Roles {
				known = append(known, r.Name+"=")
			}
		}
	}
	list, err := collectDevices("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, device := range list.Devices {
		for _, port := range device.Ports {
			for _, word := range words(device, port) {
				known = append(known, role+word)
			}
		}
	}
	slices.Sort(known)
	known = slices.DeleteFunc(slices.Compact(known), func(s string) bool { return !strings.HasPrefix(s, toComplete) })
	return known, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
