package guest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"rdmarun/host/guest/wasm"
	"rdmarun/hostfuncs"
)

// Import and Export are what a module needs and offers.
type (
	Import = wasm.Import
	Export = wasm.Export
)

// hostExports is what guests can import: signatures by module and name.
type hostExports map[string]map[string]wasm.Signature

// exportsOf is the ABI with a WASI module.
func exportsOf(wasi wazero.CompiledModule) hostExports {
	exports := hostExports{hostfuncs.ModuleName: {}, wasi_snapshot_preview1.ModuleName: {}}
	for _, function := range hostfuncs.Functions() {
		exports[hostfuncs.ModuleName][function.Name] = signature(function.Signature(), []api.ValueType{api.ValueTypeI32})
	}
	for name, function := range wasi.ExportedFunctions() {
		exports[wasi_snapshot_preview1.ModuleName][name] = signature(function.ParamTypes(), function.ResultTypes())
	}
	return exports
}

func signature(params, results []api.ValueType) wasm.Signature {
	letters := func(types []api.ValueType) string {
		var out strings.Builder
		for _, each := range types {
			out.WriteByte(wasm.Letter(each))
		}
		return out.String()
	}
	return wasm.Signature{Params: letters(params), Results: letters(results)}
}

// throwawayExports is exportsOf for who has no runtime.
func throwawayExports(ctx context.Context) (hostExports, error) {
	engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer engine.Close(ctx)
	wasi, err := newWASI(engine).Compile(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare WASI: %w", err)
	}
	return exportsOf(wasi), nil
}

// MissingImport is one import of a guest that this host cannot satisfy.
type MissingImport struct {
	Import
	Why string
}

// ABIError says that a guest imports what this host lacks.
type ABIError struct {
	Module  string // the guest
	Missing []MissingImport
}

func (e *ABIError) Error() string {
	const shown = 8
	var text strings.Builder
	fmt.Fprintf(&text, "%s imports what this host (ABI %d.%d) does not have:", e.Module,
		hostfuncs.Current.Major, hostfuncs.Current.Minor)
	for at, missing := range e.Missing {
		if at == shown {
			fmt.Fprintf(&text, "\n  and %d more", len(e.Missing)-shown)
			break
		}
		fmt.Fprintf(&text, "\n  %s.%s: %s", missing.Module, missing.Name, missing.Why)
	}
	text.WriteString("\n" + e.remedy())
	return text.String()
}

func (e *ABIError) remedy() string {
	for _, missing := range e.Missing {
		if missing.Module == hostfuncs.ModuleName {
			return "use a newer rdmarun, or build the guest with the SDK of this one (rdmarun sdk go|c DIR)"
		}
	}
	return "build the guest for WASI preview 1 (Go: GOOS=wasip1; C: --target=wasm32-wasi) with the SDK that \"rdmarun sdk go|c DIR\" writes"
}

// checkImports compares what a guest imports with what there is, before anything is compiled.
func (exports hostExports) checkImports(module string, imports []Import) error {
	e := &ABIError{Module: module}
	for _, each := range imports {
		if why := exports.missing(each); why != "" {
			e.Missing = append(e.Missing, MissingImport{each, why})
		}
	}
	if e.Missing == nil {
		return nil
	}
	return e
}

func (exports hostExports) missing(each Import) string {
	functions, ok := exports[each.Module]
	if !ok {
		known := slices.Sorted(maps.Keys(exports))
		return fmt.Sprintf("there is no import module %q, only %s", each.Module, strings.Join(known, " and "))
	}
	if each.Kind != wasm.KindFunction {
		return "only functions can be imported"
	}
	have, ok := functions[each.Name]
	if !ok {
		return "no such function"
	}
	if have != each.Signature {
		return fmt.Sprintf("the guest has it as %s, the host as %s", each.Signature, have)
	}
	return ""
}
