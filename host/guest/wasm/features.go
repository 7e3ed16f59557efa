package wasm

import (
	"fmt"
	"strings"
)

// Features are extensions of WebAssembly 1.0 that a module makes use of, as far as its instructions and types show it.
type Features uint32

// The features that guests may use.
const (
	signExtension Features = 1 << iota
	saturating
	bulkMemory
	referenceTypes
	multiValue
	simd
	atomics
	tailCall
	extendedConst
)

var featureNames = []string{"sign-extension", "saturating-float-to-int", "bulk-memory", "reference-types",
	"multi-value",
	"simd", "atomics", "tail-call", "extended-const"}

// Names are the features' names, as compilers have them.
func (f Features) Names() []string {
	names := []string{}
	for at, name := range featureNames {
		if f&(1<<at) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// featureOf is the feature that an instruction is of, 0 for those of the first version.
func featureOf(in *instruction) Features {
	switch in.opcode >> 8 {
	case prefixBulk:
		switch {
		case in.immediates == none:
			return saturating
		case in.immediates == tableIndex:
			return referenceTypes
		}
		return bulkMemory
	case prefixVector:
		return simd
	case prefixAtomic:
		return atomics
	}
	switch {
	case in.opcode >= 0xc0 && in.opcode <= 0xc4:
		return signExtension
	case in.opcode >= opRefNull:
		return referenceTypes
	}
	return 0
}

// featuresOf are those that a type is of.
func featuresOf(s Signature) (uses Features) {
	for _, letters := range []string{s.Params, s.Results} {
		if strings.IndexByte(letters, 'v') >= 0 {
			uses |= simd
		}
		if strings.IndexByte(letters, letterFunction) >= 0 || strings.IndexByte(letters, letterExternal) >= 0 {
			uses |= referenceTypes
		}
	}
	return uses
}

// missing is a feature that guests cannot use.
type missing struct {
	name   string // as the standard has it
	remedy string
}

// UnsupportedError means that a module uses a feature that guests cannot use; Remedy is how to do without it.
type UnsupportedError struct{ Feature, Remedy string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("it uses a feature of WebAssembly that guests cannot have: %s", e.Feature)
}

func unsupported(feature *missing) error {
	return &UnsupportedError{feature.name, feature.remedy}
}

var (
	exceptions = &missing{
		"exception handling", "compile it without exceptions (C++: -fno-exceptions; Rust: -C panic=abort)",
	}
	functionReferences = &missing{"typed function references", "compile it without them (clang: -mno-gc)"}
	garbageCollection  = &missing{
		"garbage-collected objects", "languages with objects of WebAssembly cannot be guests yet",
	}
	multiMemory = &missing{"several memories", "link it with one memory"}
	memory64    = &missing{"addresses of 64 bits (memory64)", "compile it for wasm32"}
	relaxedSIMD = &missing{"relaxed vector instructions", "compile it without -mrelaxed-simd"}
)

// missingOf is the feature that an unknown instruction is of; nil when that is unknown, too.
func missingOf(opcode byte) *missing {
	switch {
	case opcode >= 0x06 && opcode <= 0x0a, opcode == 0x18, opcode == 0x19, opcode == 0x1f:
		return exceptions
	case opcode == 0x14, opcode == 0x15, opcode >= 0xd4 && opcode <= 0xd6:
		return functionReferences
	case opcode == 0xd3, opcode == 0xfb:
		return garbageCollection
	}
	return nil
}

// missingType is the feature that an unknown type is of.
func missingType(code byte) *missing {
	switch {
	case code == 0x69 || code == 0x74:
		return exceptions
	case code == 0x63 || code == 0x64:
		return functionReferences
	case code >= 0x4d && code <= 0x50, code >= 0x5d && code <= 0x5f, code >= 0x6a && code <= 0x6e,
		code >= 0x71 && code <= 0x73:
		return garbageCollection
	}
	return nil
}
