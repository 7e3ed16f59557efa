package main

import (
	"github.com/spf13/cobra"
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
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			default: // OnlyValidArgs leaves the one
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
		},
	}
}
