package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
)

// drawSeed is a seed that nobody knows before, and never 0.  It has the 53 bits of which every reader of JSON keeps all.
func drawSeed() uint64 {
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // never fails
	return max(1, binary.LittleEndian.Uint64(drawn[:])>>11)
}

// seedFlag is --seed: a number of 64 bits, or nothing.
type seedFlag struct{ value *uint64 }

func (f *seedFlag) String() string {
	if f.value == nil {
		return ""
	}
	return strconv.FormatUint(*f.value, 10)
}

func (f *seedFlag) Type() string { return "N" }

// Set reads decimal and 0x numbers.
func (f *seedFlag) Set(text string) error {
	value, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return fmt.Errorf("%q is no number from 0 to 2^64-1", text)
	}
	f.value = &value
	return nil
}
