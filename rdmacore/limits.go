package rdmacore

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// demand is a number that a call asks for, under its name in the manual, and the most of it that the device has.
type demand struct {
	name         string
	wanted, most int
}

// beyond adds to the refusal of a call which of its numbers are more than the device has.  It returns any other error
// as it is.
func (d *Device) beyond(err error, demands func(*DeviceAttr) []demand) error {
	var refused *Error
	if !errors.As(err, &refused) || refused.Errno != syscall.EINVAL && refused.Errno != syscall.ENOMEM || d == nil {
		return err
	}
	attr, failure := d.Attr()
	if failure != nil {
		return err // with a more precise reason than that the device cannot be queried
	}
	var over []string
	for _, each := range demands(&attr) {
		if each.wanted > each.most {
			over = append(
				over, fmt.Sprintf("%s is %d, and %s has at most %d", each.name, each.wanted, d.Name(), each.most),
			)
		}
	}
	if len(over) > 0 {
		refused.Why = strings.Join(over, "; ")
	}
	return err
}

func (a *QPInitAttr) demands(device *DeviceAttr) []demand {
	list := []demand{
		{"max_send_wr", int(a.MaxSendWR), device.MaxQPWR}, {"max_send_sge", int(a.MaxSendSGE), device.MaxSGE},
	}
	if a.SRQ == nil { // ibv_create_qp(3): ignored with one
		list = append(list, demand{"max_recv_wr", int(a.MaxRecvWR), device.MaxQPWR}, demand{
			"max_recv_sge", int(a.MaxRecvSGE), device.MaxSGE,
		})
	}
	return list
}

func (a *SRQAttr) demands(device *DeviceAttr) []demand {
	return []demand{{"max_wr", int(a.MaxWR), device.MaxSRQWR}, {"max_sge", int(a.MaxSGE), device.MaxSRQSGE}}
}

// cqEntries are the demands of a completion queue.
func cqEntries(wanted int) func(*DeviceAttr) []demand {
	return func(device *DeviceAttr) []demand { return []demand{{"cqe", wanted, device.MaxCQE}} }
}
