package hostfuncs

import (
	"context"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Wrap makes the function that guests call of the one that does the work; nil leaves it as it is.
type Wrap func(function Function, call api.GoFunc) api.GoFunc

// Stub is a function that this host does not have, and that a guest imports all the same, having asked for that.
type Stub struct {
	Name   string
	Params []api.ValueType
}

// Instantiate makes a host module for the guests of one module, without a name in the runtime.  It has only the
// functions of these names, because the engine compiles an entry for each, and stubs, which answer -ENOSYS.  The
// context of a call has its instance (Instance.Context).
func Instantiate(
	ctx context.Context, runtime wazero.Runtime, names map[string]bool, stubs []Stub, wrap Wrap,
) (api.Module, error) {
	builder := runtime.NewHostModuleBuilder(ModuleName)
	for _, f := range Functions() {
		if !names[f.Name] {
			continue
		}
		names := make([]string, len(f.Params))
		for at, param := range f.Params {
			names[at] = param.Name
		}
		call := f.implementation()
		if wrap != nil {
			call = wrap(f, call)
		}
		builder = builder.NewFunctionBuilder().
			WithGoFunction(call, f.signature, []api.ValueType{api.ValueTypeI32}).
			WithName(f.Name).WithParameterNames(names...).Export(f.Name)
	}
	for _, stub := range stubs {
		builder = builder.NewFunctionBuilder().
			WithGoFunction(stub.implementation(), stub.Params, []api.ValueType{api.ValueTypeI32}).
			WithName(stub.Name).Export(stub.Name)
	}
	// The builder's own Instantiate gives something that no resolver of imports may return.
	compiled, err := builder.Compile(ctx)
	if err != nil {
		return nil, err
	}
	return runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
}

func (s *Stub) implementation() api.GoFunc {
	why := "this host (ABI " + Current.String() + ") has no function " + s.Name
	return func(ctx context.Context, stack []uint64) {
		instance := instanceOf(ctx)
		if instance.over.Load() {
			endGuest()
		}
		stack[0] = uint64(uint32(instance.refuse(syscall.ENOSYS, why)))
	}
}

// implementation calls the row's method with what wazero passes. The result is extended with zeros, as
// i32 results have to be.
func (f *Function) implementation() api.GoFunc {
	call, capability := f.call, f.Capability
	if f.Blocking {
		waits, name := call, f.Name
		call = func(instance *Instance, stack []uint64) int32 {
			instance.Enter(&name)
			result := waits(instance, stack)
			instance.Leave()
			return result
		}
	}
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
	return i.refuse(
		syscall.EPERM,
		"this guest is denied the capability "+capability.String()+"; the rule that is missing: allow: {calls: ["+
			capability.String()+"]}",
	)
}
