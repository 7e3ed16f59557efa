package wasm

import (
	"errors"
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

var featureNames = []string{"sign-extension", "saturating-float-to-int", "bulk-memory", "reference-types", "multi-value",
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
func featureOf(opcode byte) Features {
	switch {
	case opcode >= 0xc0 && opcode <= 0xc4:
		return signExtension
	case opcode == 0x1c, opcode == 0x25, opcode == 0x26, opcode >= 0xd0 && opcode <= 0xd2:
		return referenceTypes
	case opcode == opReturnCall, opcode == opReturnCallIndirect:
		return tailCall
	case opcode == 0xfd:
		return simd
	case opcode == 0xfe:
		return atomics
	}
	return 0
}

// missing is a feature that guests cannot use.
type missing struct {
	name   string // as the standard has it
	remedy string
}

// UnsupportedError says that a module uses a feature that guests cannot use, and how to do without it.
type UnsupportedError struct{ Feature, Remedy string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("it uses a feature of WebAssembly that guests cannot have: %s", e.Feature)
}

func unsupported(feature *missing) error {
	return &UnsupportedError{feature.name, feature.remedy}
}

var (
	exceptions         = &missing{"exception handling", "compile it without exceptions (C++: -fno-exceptions; Rust: -C panic=abort)"}
	functionReferences = &missing{"typed function references", "compile it without them (clang: -mno-gc)"}
	garbageCollection  = &missing{"garbage-collected objects", "languages whose objects are WebAssembly's cannot be guests yet"}
	multiMemory        = &missing{"several memories", "link it with one memory"}
	memory64           = &missing{"addresses of 64 bits (memory64)", "compile it for wasm32"}
	relaxedSIMD        = &missing{"relaxed vector instructions", "compile it without -mrelaxed-simd"}
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
	case code >= 0x4d && code <= 0x50, code >= 0x5d && code <= 0x5f, code >= 0x6a && code <= 0x6e, code >= 0x71 && code <= 0x73:
		return garbageCollection
	}
	return nil
}

// Used finds the features of a module, by reading all its instructions, and the first that guests cannot use.
func Used(module []byte) (Features, error) {
	sections, err := split(module)
	if err != nil {
		return 0, err
	}
	var uses Features
	for _, one := range sections {
		r := &reader{data: one.content}
		switch one.id {
		case sectionType:
			types, err := parseTypes(one.content)
			if err != nil {
				return uses, err
			}
			for _, each := range types {
				if len(each.Results) > 1 {
					uses |= multiValue
				}
				if strings.Contains(each.Params+each.Results, "?") {
					uses |= referenceTypes
				}
			}
		case sectionGlobal:
			r.vector(func() {
				r.byte()
				r.byte()
				r.expression()
			})
		case sectionCode:
			r.vector(func() {
				body := &reader{data: r.bytes(r.unsigned())}
				body.vector(func() { body.index(); body.leb() })
				for body.more() {
					body.instruction()
				}
				if uses |= body.uses; body.err != nil {
					r.fail(body.err)
				}
			})
		default:
			continue
		}
		uses |= r.uses
		if r.err != nil {
			return uses, wrapFormat(r.err)
		}
	}
	return uses, nil
}

// wrapFormat says that bytes are no module, unless they are one that uses what guests cannot have.
func wrapFormat(err error) error {
	if unsupported := (*UnsupportedError)(nil); errors.As(err, &unsupported) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}
