//go:build wasip1

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

const (
	exitFailed = 1
	exitUsage  = 64 // EX_USAGE of sysexits.h; Go's own 2 is also that of a panic
)

func main() {
	options, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pingpong:", err)
		os.Exit(exitUsage)
	}
	run := runClient
	if options.server {
		run = runServer
	}
	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, "pingpong:", err)
		os.Exit(exitFailed)
	}
}
