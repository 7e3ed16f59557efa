//go:build wasip1

package main

import (
	"encoding/binary"
	"errors"
)

// greeting is the private data of request and answer: the work to do, and where the sender's target is for
// the other's RDMA WRITEs.  Network byte order.
type greeting struct {
	work    workload
	address uint64
	rkey    uint32
}

const (
	magic        = 0x70696e67 // "ping"
	greetingSize = 28
)

func (g greeting) encode() []byte {
	data := binary.BigEndian.AppendUint32(make([]byte, 0, greetingSize), magic)
	for _, number := range []int{g.work.count, g.work.writes, g.work.size} {
		data = binary.BigEndian.AppendUint32(data, uint32(number))
	}
	data = binary.BigEndian.AppendUint64(data, g.address)
	return binary.BigEndian.AppendUint32(data, g.rkey)
}

func decodeGreeting(data []byte) (g greeting, err error) {
	if len(data) < greetingSize || binary.BigEndian.Uint32(data) != magic {
		return g, errors.New("the peer is not a pingpong")
	}
	g.work.count = int(binary.BigEndian.Uint32(data[4:]))
	g.work.writes = int(binary.BigEndian.Uint32(data[8:]))
	g.work.size = int(binary.BigEndian.Uint32(data[12:]))
	g.address = binary.BigEndian.Uint64(data[16:])
	g.rkey = binary.BigEndian.Uint32(data[24:])
	return g, g.work.check()
}
