//go:build wasip1

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"rdmarun/sdk/rdma"
)

const (
	exitFailed = 1
	exitUsage  = 64 // EX_USAGE of sysexits.h; Go's own 2 is also that of a panic
)

// options is the command line.
type options struct {
	port      uint16
	clients   int
	size      int // bytes of the longest message
	trapAfter int // messages; 0: never
	timeout   time.Duration
}

func parseOptions(args []string) (options, error) {
	var o options
	var port uint
	flags := flag.NewFlagSet("echo", flag.ContinueOnError)
	flags.UintVar(&port, "port", 7471, "port to listen on")
	flags.IntVar(&o.clients, "clients", 1, "clients to serve, one after another")
	flags.IntVar(&o.size, "size", 4096, "bytes of the longest message")
	flags.IntVar(
		&o.trapAfter, "trap-after", 0, "trap at the message with this number, before its answer (0: never)",
	)
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for a client's next move")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() != 0:
		return o, fmt.Errorf("what is %q? see --help", flags.Arg(0))
	case port == 0 || port > 65535:
		return o, fmt.Errorf("--port %d: a port is 1 to 65535", port)
	case o.clients < 1 || o.size < 1 || o.size > 1<<24 || o.trapAfter < 0:
		return o, errors.New("--clients and --size are at least 1, --size 16 MiB at most, --trap-after at least 0")
	}
	o.port = uint16(port)
	return o, nil
}

func main() {
	options, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(exitUsage)
	}
	err = serve(options)
	if errors.Is(err, rdma.ECANCELED) {
		fmt.Println("echo: asked to end")
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(exitFailed)
	}
}
