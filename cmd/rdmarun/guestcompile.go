package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
	"rdmarun/host/printable"
)

const guestCompileLong = `Compile guests into the cache, before a test or into an image,
so that they start at once. Guests that are in the cache already are not compiled again.

The cache is $RDMARUN_CACHE, else rdmarun in the user's cache folder, or --cache DIR. It
holds machine code of this version of rdmarun for this kind of processor. Only the user
who created it can use it: in an image, run this as the user who runs the guests. Runs
with --sandbox strict use the folder "strict" in it: to fill that, name it by --cache.

The exit code is 126 when a file is not a guest, and 4 when the cache cannot store it.
It is 2 when a file cannot be compiled within 2GiB of memory and 10 minutes of
processor time.`

func newGuestCompileCommand(a *app) *cobra.Command {
	var folder string
	limit := guest.DefaultTime
	command := &cobra.Command{
		Use:   "compile FILE.wasm...",
		Short: "Compile guests into the cache ahead of their run",
		Long:  guestCompileLong,
		Example: "  rdmarun guest compile guests/*.wasm\n" +
			"  rdmarun guest compile --cache /var/cache/rdmarun guests/pingpong.wasm",
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.compileGuests(command.Context(), cmp.Or(folder, a.env[guest.CacheVariable]), limit, args)
		},
		ValidArgsFunction: completeGuests,
	}
	command.Flags().StringVar(&folder, "cache", "", "the folder of the cache")
	command.Flags().DurationVar(&limit, "time", limit, "limit of the time to compile each (0: none)")
	return command
}

func (a *app) compileGuests(ctx context.Context, folder string, limit time.Duration, files []string) (err error) {
	var useless string
	life := context.WithoutCancel(ctx)
	runtime, err := guest.New(life, guest.RuntimeConfig{
		CacheDir: folder, Compiler: guest.OwnCompiler(), Warn: func(text string) { useless = text },
	})
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	defer func() { err = errors.Join(err, runtime.Close(life)) }()
	if limit == 0 {
		limit = guest.NoTimeLimit
	}
	for _, file := range files {
		compiling, began, cancel := guest.Limits{Time: limit}.Compiling(ctx)
		module, err := runtime.Compile(compiling, file)
		cancel()
		switch {
		case err != nil:
			return withExit(guestErrorCode(err), err)
		case useless != "":
			return withExit(exitEnvironment, errors.New(useless))
		}
		verb := "compiled in"
		if module.Cached() {
			verb = "in the cache already, read in"
		}
		fmt.Fprintf(
			a.stdout, "%s: %s, %s %s\n", printable.Line(file), kibibytes(module.Size()), verb,
			time.Since(began).Round(100*time.Microsecond),
		)
	}
	return nil
}
