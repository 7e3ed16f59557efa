//go:build wasip1

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"rdmarun/sdk/rdma"
)

// A store of keys and values: the server puts what it is sent into a table, which clients read by RDMA READ, without
// it. A slot has a version, even when the slot is whole and 0 when it is empty, then a key and a value.
const (
	slots     = 64
	slotSize  = 64
	keySize   = 24
	entrySize = 56 // of a key with its value
	full      = 0xffffffff
)

// firstSlot is where the search for a key begins.
func firstSlot(key []byte) int {
	hash := fnv.New32a()
	hash.Write(key)
	return int(hash.Sum32() % slots)
}

// put puts an entry, a key and a value, into the table; which slot it has.
func put(table, entry []byte) uint32 {
	for step := range slots {
		at := (firstSlot(entry[:keySize]) + step) % slots
		slot := table[at*slotSize:][:slotSize]
		version := binary.LittleEndian.Uint64(slot)
		if version != 0 && !bytes.Equal(slot[8:][:keySize], entry[:keySize]) {
			continue
		}
		binary.LittleEndian.PutUint64(slot, version+1) // odd while it changes
		copy(slot[8:], entry)
		binary.LittleEndian.PutUint64(slot, version+2)
		return uint32(at)
	}
	return full
}

func serveKV(o options) error {
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	table, err := pd.NewBuffer(slots*slotSize, rdma.AccessLocalWrite|rdma.AccessRemoteRead)
	if err != nil {
		return err
	}
	regions, err := memory(pd, entrySize, 4)
	if err != nil {
		return err
	}
	message, answer := regions[0], regions[1]
	ep, request, err := o.take(pd)
	if err != nil {
		return err
	}
	if err := receive(ep, message); err != nil {
		return err
	}
	ticket := binary.LittleEndian.AppendUint64(nil, table.Address)
	ticket = binary.LittleEndian.AppendUint32(ticket, table.RKey)
	if err := welcome(ep, binary.LittleEndian.AppendUint32(ticket, slots)); err != nil {
		return err
	}
	for range binary.LittleEndian.Uint32(request.PrivateData()) {
		if err := complete(ep.RecvCQ); err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(answer.Bytes, put(table.Bytes, message.Bytes))
		if err := receive(ep, message); err != nil {
			return err
		}
		if err := send(ep, rdma.SendWR{Opcode: rdma.OpSend}, answer); err != nil {
			return err
		}
	}
	return hungUp(ep)
}

// remote is the table as a client has it.
type remote struct {
	ep      *rdma.EP
	address uint64
	rkey    uint32
	slot    *rdma.Region // what was read last
}

// get reads a value; nil when there is none of that key.
func (r *remote) get(key []byte) ([]byte, error) {
	at := firstSlot(key)
	for range slots {
		read := rdma.SendWR{Opcode: rdma.OpRDMARead, RemoteAddress: r.address + uint64(at*slotSize), RKey: r.rkey}
		if err := send(r.ep, read, r.slot); err != nil {
			return nil, err
		}
		version := binary.LittleEndian.Uint64(r.slot.Bytes)
		switch {
		case version%2 == 1:
			continue // it changes just now
		case version == 0:
			return nil, nil
		case bytes.Equal(r.slot.Bytes[8:][:keySize], key):
			return bytes.TrimRight(r.slot.Bytes[8+keySize:], "\x00"), nil
		}
		at = (at + 1) % slots
	}
	return nil, nil
}

func keyOf(text string) []byte { return append([]byte(text), make([]byte, keySize-len(text))...) }

func askKV(o options) error {
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	regions, err := memory(pd, entrySize, 4, slotSize)
	if err != nil {
		return err
	}
	message, answer := regions[0], regions[1]
	ep, accepted, err := o.join(pd)
	if err != nil {
		return err
	}
	ticket := accepted.PrivateData()
	if binary.LittleEndian.Uint32(ticket[12:]) != slots {
		return errors.New("the server's table has another size")
	}
	for i := range o.count {
		clear(message.Bytes)
		copy(message.Bytes, fmt.Sprintf("key-%d", i))
		copy(message.Bytes[keySize:], fmt.Sprintf("value-%d", i))
		if err := ask(ep, message, answer); err != nil {
			return err
		}
		if binary.LittleEndian.Uint32(answer.Bytes) == full {
			return errors.New("the table is full")
		}
	}
	table := &remote{ep, binary.LittleEndian.Uint64(ticket), binary.LittleEndian.Uint32(ticket[8:]), regions[2]}
	for i := range o.count {
		value, err := table.get(keyOf(fmt.Sprintf("key-%d", i)))
		if err != nil || string(value) != fmt.Sprintf("value-%d", i) {
			return fmt.Errorf("key %d has the value %q: %w", i, value, err)
		}
	}
	if value, err := table.get(keyOf("missing")); err != nil || value != nil {
		return fmt.Errorf("a key that no client has put has the value %q: %w", value, err)
	}
	fmt.Printf("kv: %d keys put and read back\n", o.count)
	return hangUp(ep)
}
