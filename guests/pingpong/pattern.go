//go:build wasip1

package main

import (
	"encoding/binary"
	"fmt"
)

// side is the sender. The bytes of the two sides differ, so that a side detects an echo of its own bytes.
type side uint64

const (
	clientSide side = 0x11
	serverSide side = 0x77
)

func (s side) other() side { return clientSide ^ serverSide ^ s }

// weyl is an odd constant with well-mixed bits (2^64 divided by the golden ratio). Multiples of it differ in each byte
// from one word to the next and from one message to the next.
const weyl = 0x9e3779b97f4a7c15

func (s side) seed(n int) uint64 { return (uint64(n)<<8 + uint64(s)) * weyl }

// fill writes the bytes of the n-th message.
func (s side) fill(message []byte, n int) {
	word := s.seed(n)
	for len(message) >= 8 {
		binary.LittleEndian.PutUint64(message, word)
		message = message[8:]
		word += weyl
	}
	for at := range message {
		message[at] = byte(word >> (8 * at))
	}
}

// verify compares each byte with what fill writes.
func (s side) verify(message []byte, n int) error {
	word, at := s.seed(n), 0
	for ; at+8 <= len(message); at += 8 {
		if binary.LittleEndian.Uint64(message[at:]) != word {
			break
		}
		word += weyl
	}
	for ; at < len(message); at++ {
		if want := byte(word >> (8 * (at % 8))); message[at] != want {
			return fmt.Errorf("message %d: byte %d is %#02x, not %#02x", n, at, message[at], want)
		}
		if at%8 == 7 {
			word += weyl
		}
	}
	return nil
}
