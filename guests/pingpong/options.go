//go:build wasip1

package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"time"

	"rdmarun/sdk/rdma"
)

// options is the command line.
type options struct {
	server  bool
	peer    netip.AddrPort // client
	port    uint16
	work    workload // client
	polls   int      // client: polls of an empty completion queue to time
	timeout time.Duration
}

// workload is what the client asks for.
type workload struct {
	count  int // SENDs each way
	writes int // RDMA WRITEs each way
	size   int // bytes in each
}

const (
	defaultPort = 7471
	maxCount    = 1 << 24
	maxSize     = 1 << 24
)

func parseOptions(args []string) (options, error) {
	var o options
	var client string
	var port uint
	flags := flag.NewFlagSet("pingpong", flag.ContinueOnError)
	flags.BoolVar(&o.server, "server", false, "wait for a client and answer it")
	flags.StringVar(
		&client, "client", "", "connect to the server at this IP `address` (\"self\": of this host's device)",
	)
	flags.UintVar(&port, "port", defaultPort, "port to listen on or connect to")
	flags.IntVar(&o.work.count, "count", 1000, "SENDs each way")
	flags.IntVar(&o.work.writes, "writes", 1000, "RDMA WRITEs each way")
	flags.IntVar(&o.work.size, "size", 64, "bytes in each")
	flags.IntVar(&o.polls, "polls", 0, "polls of an empty completion queue to time first")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the peer's next move")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() != 0:
		return o, fmt.Errorf("what is %q? see --help", flags.Arg(0))
	case o.server == (client != ""):
		return o, errors.New("either --server or --client ADDRESS")
	case o.polls < 0 || o.polls > maxCount:
		return o, fmt.Errorf("--polls is 0 to %d", maxCount)
	case port == 0 || port > 65535:
		return o, fmt.Errorf("--port %d: a port is 1 to 65535", port)
	}
	o.port = uint16(port)
	if o.server {
		return o, nil
	}
	if err := o.work.check(); err != nil {
		return o, err
	}
	address, err := peerAddress(client)
	o.peer = netip.AddrPortFrom(address, o.port)
	return o, err
}

func (w workload) check() error {
	switch {
	case w.count < 0 || w.count > maxCount || w.writes < 0 || w.writes > maxCount:
		return fmt.Errorf("--count and --writes are 0 to %d", maxCount)
	case w.size < 1 || w.size > maxSize:
		return fmt.Errorf("--size is 1 to %d", maxSize)
	}
	return nil
}

func peerAddress(text string) (netip.Addr, error) {
	if text == "self" {
		return rdma.DeviceAddress()
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return address, fmt.Errorf("--client %s: not an IP address", text)
	}
	return address, nil
}
