package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/sdk"
)

const sdkLong = `Write what guests are written with, in the version that fits this rdmarun.  DIR is new,
or has an SDK that an earlier rdmarun wrote: that is brought up to date.

  go  a module of its own, rdmarun/sdk/rdma.  No registry has it: the guest's go.mod
      says where it lies, with the two lines that this command prints
  c   rdma.h, for any compiler with WebAssembly as a target

"rdmarun new NAME --template guest-go" (or guest-c) writes a guest with its SDK.`

func newSDKCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "sdk " + strings.Join(sdk.Languages(), "|") + " DIR",
		Short:   "Write the SDK for guests in Go or C",
		Long:    sdkLong,
		Example: "  rdmarun sdk go rdma\n  rdmarun sdk c include",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || !slices.Contains(sdk.Languages(), args[0]) {
				return withHint(usageError("the SDK for which language, and where to?"), "for example: rdmarun sdk go rdma; the languages are "+strings.Join(sdk.Languages(), ", "))
			}
			return a.writeSDK(args[0], args[1])
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return sdk.Languages(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
}

func (a *app) writeSDK(language, directory string) error {
	directory = filepath.Clean(directory)
	err := sdk.Write(language, directory)
	if occupied := (*sdk.OccupiedError)(nil); errors.As(err, &occupied) {
		return withHint(withExit(exitUsage, err), "name a folder that is new, or has an SDK alone")
	}
	if err != nil {
		return err
	}
	switch language {
	case "go":
		where := directory
		if !filepath.IsAbs(where) {
			where = "./" + where
		}
		if strings.ContainsAny(where, " \t\"'`()[]{},") {
			where = strconv.Quote(where)
		}
		_, err = fmt.Fprintf(a.stdout, "%s: import %q; in go.mod\n  require %s v0.0.0\n  replace %s => %s\n",
			directory, sdk.GoModule, sdk.GoModule, sdk.GoModule, where)
	default:
		_, err = fmt.Fprintf(a.stdout, "%s: #include \"rdma.h\"; build with\n  clang --target=wasm32 -nostdlib -mbulk-memory -Wl,--no-entry -I%s guest.c -o guest.wasm\n",
			directory, directory)
	}
	return err
}
