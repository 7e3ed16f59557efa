//go:build wasip1

package main

import (
	"bytes"
	"errors"
	"fmt"

	"rdmarun/sdk/rdma"
)

// What connect and accept agree on.  The server rejects the first request with the reason, and accepts the second.
// What one side offers to read, the other sees as what it has to serve.
const (
	refusal         = "try again"
	greeting        = "welcome"
	consumerDefined = 28 // a peer's own reason to reject (IBTA)
)

func serveNegotiate(o options) error {
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	listener, err := o.listen(pd)
	if err != nil {
		return err
	}
	first, err := listener.Expect(rdma.EventConnectRequest, rdma.Forever)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(first.PrivateData(), []byte("first")) || first.Param.ResponderResources != 2 ||
		first.Param.InitiatorDepth != 4 {
		return errors.New("the first request offers something else")
	}
	if err := first.EP.Reject([]byte(refusal)); err != nil {
		return err
	}
	second, err := listener.Expect(rdma.EventConnectRequest, waitLimit)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(second.PrivateData(), []byte("second")) {
		return errors.New("the second request's private data")
	}
	granted := param([]byte(greeting))
	granted.ResponderResources, granted.InitiatorDepth = 2, 3
	if err := second.EP.Accept(granted); err != nil {
		return err
	}
	if _, err := second.EP.Expect(rdma.EventEstablished, waitLimit); err != nil {
		return err
	}
	return hungUp(second.EP)
}

// offer asks the server for a connection.
func (o options) offer(pd *rdma.PD, text string) (*rdma.EP, error) {
	ep, err := o.dial(pd)
	if err != nil {
		return nil, err
	}
	offered := param([]byte(text))
	offered.ResponderResources, offered.InitiatorDepth = 4, 2
	return ep, ep.Connect(offered)
}

func askNegotiate(o options) error {
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	ep, err := o.offer(pd, "first")
	if err != nil {
		return err
	}
	refused, err := ep.WaitEvent(waitLimit)
	if err != nil {
		return err
	}
	if refused.Type != rdma.EventRejected || refused.Status != consumerDefined ||
		!bytes.HasPrefix(refused.PrivateData(), []byte(refusal)) {
		return fmt.Errorf("the first request is answered by %s with status %d", refused.Type, refused.Status)
	}
	if ep, err = o.offer(pd, "second"); err != nil {
		return err
	}
	accepted, err := ep.Expect(rdma.EventEstablished, waitLimit)
	if err != nil {
		return err
	}
	got := accepted.Param
	if !bytes.HasPrefix(accepted.PrivateData(), []byte(greeting)) || got.InitiatorDepth != 2 ||
		got.ResponderResources != 3 {
		return fmt.Errorf("the acceptance grants %d and %d", got.InitiatorDepth, got.ResponderResources)
	}
	fmt.Printf("negotiate: rejected, then agreed on %d and %d\n", got.InitiatorDepth, got.ResponderResources)
	return hangUp(ep)
}
