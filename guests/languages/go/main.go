//go:build wasip1

// Command go has the examples of guests/languages in Go: EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"rdmarun/sdk/rdma"
)

const waitLimit = 10 * time.Second

// options are what the command line says.
type options struct {
	port    uint16
	address netip.Addr // of the server
	count   uint32
}

func main() {
	args := os.Args[1:]
	if err := run(args); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", strings.Join(args, " "), err)
		os.Exit(1)
	}
}

func run(args []string) error {
	examples := map[string]func(options) error{
		"pingpong server": servePingpong, "pingpong client": askPingpong,
		"kv server": serveKV, "kv client": askKV,
		"negotiate server": serveNegotiate, "negotiate client": askNegotiate,
	}
	words := append(args, "", "", "", "", "")
	example, ok := examples[words[0]+" "+words[1]]
	if !ok {
		return errors.New("pingpong, kv or negotiate; server or client")
	}
	port, err := strconv.ParseUint(words[2], 10, 16)
	if err != nil {
		return err
	}
	count, err := strconv.ParseUint(cmp.Or(words[4], "100"), 10, 32)
	if err != nil {
		return err
	}
	o := options{port: uint16(port), count: uint32(count)}
	if words[3] != "" {
		if o.address, err = netip.ParseAddr(words[3]); err != nil {
			return err
		}
	}
	return example(o)
}

// qp is what each end of a connection has.
func qp() *rdma.QPInitAttr {
	return &rdma.QPInitAttr{Type: rdma.QPTypeRC, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1}
}

func (o options) listen(pd *rdma.PD) (*rdma.EP, error) {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return nil, err
	}
	listener, err := channel.Bind(netip.AddrPortFrom(netip.IPv4Unspecified(), o.port), pd, qp())
	if err != nil {
		return nil, err
	}
	return listener, listener.Listen(4)
}

func (o options) dial(pd *rdma.PD) (*rdma.EP, error) {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return nil, err
	}
	return channel.Dial(netip.AddrPortFrom(o.address, o.port), pd, qp())
}

// param is a connection with one RDMA READ at once, and private data.
func param(privateData []byte) *rdma.ConnParam {
	p := &rdma.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}
	p.SetPrivateData(privateData)
	return p
}

// memory registers several ranges of fresh memory, for messages.
func memory(pd *rdma.PD, sizes ...int) ([]*rdma.Region, error) {
	regions := make([]*rdma.Region, len(sizes))
	for at, size := range sizes {
		region, err := pd.NewBuffer(size, rdma.AccessLocalWrite)
		if err != nil {
			return nil, err
		}
		regions[at] = region
	}
	return regions, nil
}

// receive posts a receive with all of a region.
func receive(ep *rdma.EP, to *rdma.Region) error {
	_, err := ep.QP.PostRecv([]rdma.RecvWR{{NumSGE: 1}}, []rdma.SGE{to.SGE(0, len(to.Bytes))})
	return err
}

// send posts a request with all of a region, and waits for its end.
func send(ep *rdma.EP, wr rdma.SendWR, from *rdma.Region) error {
	wr.NumSGE = 1
	if _, err := ep.QP.PostSend([]rdma.SendWR{wr}, []rdma.SGE{from.SGE(0, len(from.Bytes))}); err != nil {
		return err
	}
	return complete(ep.SendCQ)
}

// complete waits for one completion, which must be a success.
func complete(cq *rdma.CQ) error {
	var wcs [1]rdma.WC
	if _, err := cq.Wait(wcs[:], waitLimit); err != nil {
		return err
	}
	return wcs[0].Err()
}

// hangUp is the client's end of a connection, hungUp the server's.
func hangUp(ep *rdma.EP) error {
	if err := ep.Disconnect(); err != nil {
		return err
	}
	_, err := ep.Expect(rdma.EventDisconnected, waitLimit)
	return err
}

func hungUp(ep *rdma.EP) error {
	if _, err := ep.Expect(rdma.EventDisconnected, waitLimit); err != nil {
		return err
	}
	return ep.Disconnect()
}
