package rdmacore_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"

	"rdmarun/rdmacore"
)

// A program may send anything to the rdmarun that controls its device.
func TestDecodeControl(t *testing.T) {
	const kind, result, size = 0, 8, 16 // of struct core_control_answer
	for name, bad := range map[string][]byte{
		"empty": nil, "too short": make([]byte, size-1), "too long": make([]byte, size+1),
	} {
		if answer, err := rdmacore.DecodeControl(bad); err == nil {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	failed := make([]byte, size)
	binary.NativeEndian.PutUint32(failed[kind:], uint32(rdmacore.ControlFaultAdd))
	binary.NativeEndian.PutUint32(failed[result:], uint32(0xffffffff&-int64(syscall.ENOSPC)))
	if answer, err := rdmacore.DecodeControl(failed); err != nil || !errors.Is(answer.Err, syscall.ENOSPC) {
		t.Errorf("a failure: %+v, %v", answer, err)
	}
}

func TestDecodeControlHello(t *testing.T) {
	const faultSize, counters, name, index = 4, 8, 12, 52 // offsets in struct core_control_hello
	const most = 48                                       // CORE_COUNTERS_MAX
	hello := func(change func(message []byte)) []byte {
		message := make([]byte, rdmacore.ControlMessageMax)
		copy(message, rdmacore.ControlWelcome()[:4])
		for size := uint32(0); size < 1<<16; size++ {
			binary.NativeEndian.PutUint32(message[faultSize:], size)
			if _, err := rdmacore.DecodeControlHello(message); err == nil {
				break
			}
		}
		change(message)
		return message
	}
	put := func(offset int, value uint32) []byte {
		return hello(func(message []byte) {
			binary.NativeEndian.PutUint32(message[counters:], 1)
			binary.NativeEndian.PutUint32(message[offset:], value)
		})
	}
	for name, message := range map[string][]byte{
		"empty":             nil,
		"too short":         put(index, 0)[1:],
		"too long":          append(put(index, 0), 0),
		"another version":   put(0, 99),
		"another fault":     put(faultSize, 1),
		"too many counters": put(counters, most+1),
		"counters, at most": put(counters, 1<<32-1),
		"too high an index": put(index, most),
		"an index, at most": put(index, 1<<32-1),
	} {
		if counters, err := rdmacore.DecodeControlHello(message); err == nil {
			t.Errorf("%s: %v", name, counters)
		}
	}
	endless := strings.Repeat("x", index-name)
	got, err := rdmacore.DecodeControlHello(hello(func(message []byte) {
		binary.NativeEndian.PutUint32(message[counters:], 1)
		copy(message[name:], endless)
		binary.NativeEndian.PutUint32(message[index:], 31)
	}))
	if err != nil || len(got) != 1 || got[0].Name != endless {
		t.Fatalf("a name without an end: %v, %v", got, err)
	}
	tally := rdmacore.NewTally()
	binary.NativeEndian.PutUint64(tally[31*8:], 1<<63)
	binary.NativeEndian.PutUint32(tally[len(tally)-4:], 5)
	if value := tally.Counter(got[0]); value != 1<<63 {
		t.Errorf("the last counter is %d", value)
	}
	for rule, want := range map[uint32]uint32{62: 0, 63: 5, 64: 0, 1<<32 - 1: 0} {
		if applied := tally.Applied(rule); applied != want {
			t.Errorf("rule %d was applied to %d, want %d", rule, applied, want)
		}
	}
}

func TestEncodeControl(t *testing.T) {
	if _, err := rdmacore.EncodeControl(rdmacore.ControlRequest{
		Kind: rdmacore.ControlFaultAdd, Fault: &rdmacore.Fault{Probability: 2},
	}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a bad fault: %v", err)
	}
}
