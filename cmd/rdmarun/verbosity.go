package main

import (
	"fmt"
	"strconv"
)

// verbosity is -v, which counts: -vv is 2.  Elsewhere it is a number, or true for 1.
type verbosity int

const (
	showSteps  verbosity = 1
	showPlaces verbosity = 2
)

func (v *verbosity) String() string { return strconv.Itoa(int(*v)) }

// Type is that of a counting flag, which its usage shows without a value.
func (*verbosity) Type() string { return "count" }

// Set takes "+1", which is a -v without a value, a number, and booleans.
func (v *verbosity) Set(text string) error {
	if text == "+1" {
		*v++
		return nil
	}
	if number, err := strconv.ParseUint(text, 10, 8); err == nil {
		*v = verbosity(number)
		return nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%q is neither a number, true nor false", text)
	}
	*v = 0
	if on {
		*v = 1
	}
	return nil
}
