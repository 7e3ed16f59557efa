package hostfuncs

import (
	"context"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Instantiate adds the host module to a runtime, once for all its guests: which instance a call is for,
// its context says (Instance.Context).
func Instantiate(ctx context.Context, runtime wazero.Runtime) error {
	builder := runtime.NewHostModuleBuilder(ModuleName)
	for _, f := range Functions() {
		names := make([]string, len(f.Params))
		for at, param := range f.Params {
			names[at] = param.Name
		}
		builder = builder.NewFunctionBuilder().
			WithGoFunction(f.implementation(), f.signature, []api.ValueType{api.ValueTypeI32}).
			WithName(f.Name).WithParameterNames(names...).Export(f.Name)
	}
	_, err := builder.Instantiate(ctx)
	return err
}

// implementation calls the row's method with what wazero passes. The result is extended with zeros, as
// i32 results have to be.
func (f *Function) implementation() api.GoFunc {
	call, capability := f.call, f.Capability
	return func(ctx context.Context, stack []uint64) {
		instance := instanceOf(ctx)
		if instance.over.Load() {
			endGuest()
		}
		if instance.denied&capability != 0 {
			stack[0] = uint64(uint32(instance.deny(capability)))
			return
		}
		stack[0] = uint64(uint32(call(instance, stack)))
	}
}

func (i *Instance) deny(capability Capability) int32 {
	return i.refuse(syscall.EPERM, "this guest is denied the capability "+capability.String())
}
