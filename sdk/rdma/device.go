package rdma

import (
	"time"
	"unsafe"
)

// WaitAsync waits for the next asynchronous event of the default device. It is an event of the guest's own QPs, CQs
// and shared receive queues on it, of a port, or of the device itself.
func WaitAsync(timeout time.Duration) (AsyncEvent, error) { return waitAsync(0, timeout) }

// WaitAsync is the function of that name for the endpoint's device.
func (ep *EP) WaitAsync(timeout time.Duration) (AsyncEvent, error) {
	return waitAsync(ep.Handle, timeout)
}

func waitAsync(ep Handle, timeout time.Duration) (AsyncEvent, error) {
	event := AsyncEvent{StructSize: uint32(unsafe.Sizeof(AsyncEvent{}))}
	err := check("wait_async", abiWaitAsync(ep, &event, int64(timeout)))
	return event, err
}

// QueryPort asks for a port of the default device; the first is 1.
func QueryPort(number int) (PortAttr, error) { return queryPort(0, number) }

// QueryPort is the function of that name for the endpoint's device.
func (ep *EP) QueryPort(number int) (PortAttr, error) { return queryPort(ep.Handle, number) }

func queryPort(ep Handle, number int) (PortAttr, error) {
	attr := PortAttr{StructSize: uint32(unsafe.Sizeof(PortAttr{}))}
	err := check("query_port", abiQueryPort(ep, uint32(number), &attr))
	return attr, err
}
