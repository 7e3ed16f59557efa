// Command NAME is a guest of rdmarun: a server that takes one connection and answers its message in capitals.
// NAME.yaml brings the client.
package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"time"

	"rdmarun/sdk/rdma"
)

const (
	port      = 7471
	longest   = 1024 // bytes of a message
	waitLimit = 10 * time.Second
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "NAME:", err)
		os.Exit(1)
	}
}

// serve listens, and serves the first who comes.
func serve() error {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	attr := &rdma.QPInitAttr{Type: rdma.QPTypeRC, MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1}
	listener, err := channel.Bind(netip.AddrPortFrom(netip.IPv4Unspecified(), port), pd, attr)
	if err != nil {
		return err
	}
	if err := listener.Listen(1); err != nil {
		return err
	}
	request, err := listener.Expect(rdma.EventConnectRequest, rdma.Forever)
	if err != nil {
		return err
	}
	client := request.EP
	memory, err := pd.NewBuffer(longest, rdma.AccessLocalWrite)
	if err != nil {
		return err
	}
	// The client may send as soon as it is accepted, so the receive is posted before.
	if _, err := client.QP.PostRecv([]rdma.RecvWR{{NumSGE: 1}}, []rdma.SGE{memory.SGE(0, longest)}); err != nil {
		return err
	}
	if err := client.Accept(nil); err != nil {
		return err
	}
	if _, err := client.Expect(rdma.EventEstablished, waitLimit); err != nil {
		return err
	}
	if err := answer(client, memory); err != nil {
		return err
	}
	if _, err := client.Expect(rdma.EventDisconnected, waitLimit); err != nil {
		return err
	}
	return client.Disconnect() // the client's own waits for it
}

// answer sends the message that comes back in capitals, from where it came to.
func answer(client *rdma.EP, memory *rdma.Region) error {
	received, err := complete(client.RecvCQ)
	if err != nil {
		return err
	}
	message := memory.Bytes[:received.ByteLen]
	fmt.Printf("NAME: %q\n", message)
	copy(message, bytes.ToUpper(message))
	send := []rdma.SendWR{{Opcode: rdma.OpSend, NumSGE: 1}}
	if _, err := client.QP.PostSend(send, []rdma.SGE{memory.SGE(0, len(message))}); err != nil {
		return err
	}
	_, err = complete(client.SendCQ)
	return err
}

// complete waits for one completion, which must be a success.
func complete(cq *rdma.CQ) (rdma.WC, error) {
	var wcs [1]rdma.WC
	if _, err := cq.Wait(wcs[:], waitLimit); err != nil {
		return wcs[0], err
	}
	return wcs[0], wcs[0].Err()
}
