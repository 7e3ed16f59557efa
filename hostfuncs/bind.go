package hostfuncs

import (
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

// word is a parameter as wasm has it.  Converting from the uint64 that wazero passes truncates, and has
// to: the upper half of an i32 parameter is garbage.
type word interface {
	~uint32 | ~int32 | ~uint64 | ~int64
}

// binding is the implementation of a row with the signature that its Go types have.
type binding struct {
	signature []api.ValueType
	call      func(*Instance, []uint64) int32
}

func wasmType[T word]() api.ValueType {
	if unsafe.Sizeof(T(0)) == 8 {
		return api.ValueTypeI64
	}
	return api.ValueTypeI32
}

func bind0(f func(*Instance) int32) binding {
	return binding{nil, func(i *Instance, _ []uint64) int32 { return f(i) }}
}

func bind1[A word](f func(*Instance, A) int32) binding {
	return binding{[]api.ValueType{wasmType[A]()}, func(i *Instance, s []uint64) int32 {
		return f(i, A(s[0]))
	}}
}

func bind2[A, B word](f func(*Instance, A, B) int32) binding {
	return binding{[]api.ValueType{wasmType[A](), wasmType[B]()}, func(i *Instance, s []uint64) int32 {
		return f(i, A(s[0]), B(s[1]))
	}}
}

func bind3[A, B, C word](f func(*Instance, A, B, C) int32) binding {
	signature := []api.ValueType{wasmType[A](), wasmType[B](), wasmType[C]()}
	return binding{signature, func(i *Instance, s []uint64) int32 {
		return f(i, A(s[0]), B(s[1]), C(s[2]))
	}}
}

func bind4[A, B, C, D word](f func(*Instance, A, B, C, D) int32) binding {
	signature := []api.ValueType{wasmType[A](), wasmType[B](), wasmType[C](), wasmType[D]()}
	return binding{signature, func(i *Instance, s []uint64) int32 {
		return f(i, A(s[0]), B(s[1]), C(s[2]), D(s[3]))
	}}
}

func bind5[A, B, C, D, E word](f func(*Instance, A, B, C, D, E) int32) binding {
	signature := []api.ValueType{wasmType[A](), wasmType[B](), wasmType[C](), wasmType[D](), wasmType[E]()}
	return binding{signature, func(i *Instance, s []uint64) int32 {
		return f(i, A(s[0]), B(s[1]), C(s[2]), D(s[3]), E(s[4]))
	}}
}

func bind6[A, B, C, D, E, F word](f func(*Instance, A, B, C, D, E, F) int32) binding {
	signature := []api.ValueType{
		wasmType[A](), wasmType[B](), wasmType[C](), wasmType[D](), wasmType[E](), wasmType[F](),
	}
	return binding{signature, func(i *Instance, s []uint64) int32 {
		return f(i, A(s[0]), B(s[1]), C(s[2]), D(s[3]), E(s[4]), F(s[5]))
	}}
}

func bind10[A, B, C, D, E, F, G, H, I, J word](f func(*Instance, A, B, C, D, E, F, G, H, I, J) int32) binding {
	signature := []api.ValueType{wasmType[A](), wasmType[B](), wasmType[C](), wasmType[D](), wasmType[E](),
		wasmType[F](),
		wasmType[G](), wasmType[H](), wasmType[I](), wasmType[J]()}
	return binding{signature, func(i *Instance, s []uint64) int32 {
		return f(i, A(s[0]), B(s[1]), C(s[2]), D(s[3]), E(s[4]), F(s[5]), G(s[6]), H(s[7]), I(s[8]), J(s[9]))
	}}
}
