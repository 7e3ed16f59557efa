package guest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"rdmarun/host/bounded"
	"rdmarun/host/guest/wasm"
	"rdmarun/host/printable"
	"rdmarun/hostfuncs"
)

// Module is a compiled guest; any number of instances can run.
type Module struct {
	name     string
	facts    wasm.Facts
	compiled wazero.CompiledModule
	engine   wazero.Runtime
	metered  bool
	lines    func() *wasm.Lines // nil without a line table and a source map
	names    wasm.Names
	spare    uint64 // bytes at the end of its memory's maximum that no instance gets
	size     int    // of the file
	cached   bool
	// host has what the module imports of the ABI; nil when that is nothing.
	host api.Module
}

// minMemory is the memory that the module starts with, in bytes.
func (m *Module) minMemory() int64 { return int64(m.facts.MinPages) * pageSize }

// freeInstance is the part of an instance that is not charged, so that a small guest has its whole limit for its pages.
const freeInstance = 64 << 10

// instanceSize is what each instance takes in addition to its memory, in bytes.
func (m *Module) instanceSize() int64 { return int64(m.facts.InstanceSize) }

// Size is the size of the file, in bytes.
func (m *Module) Size() int { return m.size }

// Cached means that the module had been compiled before.
func (m *Module) Cached() bool { return m.cached }

// FormatError means that a file is not a guest.
type FormatError struct {
	Module string
	Err    error
	remedy string
}

func (e *FormatError) Error() string { return e.Module + ": " + e.Err.Error() + "; " + e.remedy }
func (e *FormatError) Unwrap() error { return e.Err }

var (
	errNoStart = errors.New("the module has no function _start")
	errShared  = errors.New("the module's memory is shared between threads")
)

// Code are the files of a module.
type Code struct {
	Module string
	// SourceMap is that of its source map, where there may be one.
	SourceMap string
}

// CodeOf is a module, and its source map if there is one: next to it.  What the module itself says is the text of a
// stranger, and may be an address elsewhere.
func CodeOf(module string) Code { return Code{Module: module, SourceMap: module + ".map"} }

// Files are those that are there, and the module in any case.
func (c Code) Files() []string {
	if info, err := os.Stat(c.SourceMap); err != nil || !info.Mode().IsRegular() || info.Size() > wasm.MaxSourceMap {
		return []string{c.Module}
	}
	return []string{c.Module, c.SourceMap}
}

// readSourceMap reads it; nil where it cannot be read.
func (c Code) readSourceMap() []byte {
	if len(c.Files()) == 1 {
		return nil
	}
	text, err := bounded.Read(c.SourceMap, wasm.MaxSourceMap)
	if err != nil {
		return nil
	}
	return text
}

// Compile is CompileCode of a module in a folder.
func (r *Runtime) Compile(ctx context.Context, path string) (*Module, error) {
	return r.CompileCode(ctx, CodeOf(path))
}

// CompileCode reads, checks and compiles a module; once for each content, and from the cache when it has been
// compiled before.  Errors: those of reading the file, *FormatError, *ABIError, *CompilerError.
func (r *Runtime) CompileCode(ctx context.Context, code Code) (*Module, error) {
	module, err := readModule(code.Module)
	if err != nil {
		return nil, err
	}
	return r.compileBytes(ctx, moduleName(code.Module), module, code.readSourceMap())
}

// maxModule is the size of a guest, in bytes.  Programs of whole language runtimes stay below a third.
const maxModule = 64 << 20

// maxRewritten is the size of what becomes of one, in bytes.
const maxRewritten = 4 * maxModule

func readModule(path string) ([]byte, error) {
	module, err := bounded.Read(path, maxModule+1)
	if err == nil && len(module) > maxModule {
		err = fmt.Errorf("%s has more than %dMiB", path, maxModule>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("read the guest: %w", err)
	}
	return module, nil
}

func moduleName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".wasm") }

// compileBytes is Compile for a module and its source map in memory.  It returns when ctx ends; a compiler process is
// killed then, and one within this process comes to the end of its function.
func (r *Runtime) compileBytes(ctx context.Context, name string, module, sourceMap []byte) (*Module, error) {
	type compiled struct {
		module *Module
		err    error
	}
	done := make(chan compiled, 1)
	select {
	case r.compiling <- struct{}{}:
		go func() {
			defer func() { <-r.compiling }()
			module, err := r.compile(ctx, name, module, sourceMap)
			done <- compiled{module, err}
		}()
	case <-ctx.Done():
		return nil, compileStopped(ctx, name)
	}
	select {
	case result := <-done:
		if ctx.Err() != nil && result.err != nil {
			return nil, compileStopped(ctx, name)
		}
		return result.module, result.err
	case <-ctx.Done():
		return nil, compileStopped(ctx, name)
	}
}

func compileStopped(ctx context.Context, name string) error {
	return fmt.Errorf("compile %s: %w", name, context.Cause(ctx))
}

// compile needs the place in compiling.
func (r *Runtime) compile(ctx context.Context, name string, module, sourceMap []byte) (*Module, error) {
	sum := sha256.Sum256(module)
	key := name + "\x00" + string(sum[:])
	if known, ok := r.modules[key]; ok {
		return known, nil
	}
	decoded, err := check(name, module, r.exports)
	if err != nil {
		return nil, err
	}
	m := &Module{
		name: name, size: len(module), facts: decoded.Facts, names: decoded.Names(),
		metered: r.mode == InterruptMetered,
	}
	kept := r.cache.moduleEntry(r.mode, sum)
	rewritten := r.cache.module(kept)
	fresh := rewritten == nil
	if fresh {
		rewritten, err = r.rewrite(ctx, m, decoded)
	} else if decoded.HasLines() {
		m.lines = sync.OnceValue(func() *wasm.Lines { return wasm.LinesOf(module, m.metered) })
	}
	if err != nil {
		return nil, err
	}
	if lines := m.lines; lines != nil && sourceMap != nil {
		m.lines = sync.OnceValue(func() *wasm.Lines { return lines().WithSourceMap(sourceMap) })
	}
	m.spare = rewritten.spare * pageSize
	if err := r.generate(ctx, m, rewritten); err != nil {
		return nil, err
	}
	if fresh {
		r.cache.putModule(kept, rewritten)
	}
	if err := r.link(ctx, m); err != nil {
		return nil, err
	}
	r.modules[key] = m
	return m, nil
}

// looks reports whether wazero looks at contexts.
func (r *Runtime) looks() bool { return r.mode == InterruptContext }

// rewrite decodes the functions of a module that was checked, and gives what the engine gets of it.
func (r *Runtime) rewrite(ctx context.Context, m *Module, decoded *wasm.Module) (*rewrittenModule, error) {
	rewrite := decoded.Bound
	if m.metered {
		rewrite = decoded.Meter
	}
	rewritten, err := rewrite(ctx)
	if err != nil {
		return nil, formatError(m.name, err)
	}
	if rewritten.Lines != nil {
		m.lines = func() *wasm.Lines { return rewritten.Lines }
	}
	return &rewrittenModule{rewritten.Module, codeEntry(rewritten.Module, r.looks()), rewritten.SparePages}, nil
}

// link makes the host module that the module imports; on demand with stubs for functions that this host lacks.
func (r *Runtime) link(ctx context.Context, m *Module) (err error) {
	var stubs []hostfuncs.Stub
	names, stubbed := make(map[string]bool), make(map[string]bool)
	for _, each := range m.facts.Imports {
		switch {
		case each.Module != hostfuncs.ModuleName:
		case r.exports.missing(each) == "":
			names[each.Name] = true
		case !stubbed[each.Name]: // else check had refused it
			stubbed[each.Name] = true
			params, _ := wasm.Types(each.Signature.Params)
			stubs = append(stubs, hostfuncs.Stub{Name: each.Name, Params: params})
		}
	}
	if len(names)+len(stubs) == 0 {
		return nil
	}
	if m.host, err = hostfuncs.Instantiate(ctx, m.engine, names, stubs, r.wrap()); err != nil {
		return fmt.Errorf("prepare the host functions of %s: %w", m.name, err)
	}
	return nil
}

// generate makes the machine code of a rewritten module: from the cache, or by the compiler.
func (r *Runtime) generate(ctx context.Context, m *Module, rewritten *rewrittenModule) (err error) {
	if m.engine, err = r.engine(ctx, r.looks()); err != nil {
		return err
	}
	if code := r.cache.code(rewritten.code); code != nil {
		if m.compiled, err = r.store.load(ctx, m.engine, rewritten.bytes, code); err == nil {
			m.cached = true
			return nil
		}
		// Made for another processor, or by another build of wazero.
		r.cache.remove(rewritten.code.code())
	}
	code, err := r.compileCode(ctx, m, rewritten.bytes, r.looks())
	if err == nil {
		r.cache.putCode(rewritten.code, code)
	}
	return err
}

// compileCode compiles a module where the runtime's compiler is.
func (r *Runtime) compileCode(
	ctx context.Context, m *Module, module []byte, looks bool,
) (code *machineCode, err error) {
	if len(r.compiler) == 0 {
		// then wazero looks between functions whether ctx has ended
		ctx = experimental.WithCompilationWorkers(ctx, compilerWorkers)
		m.compiled, code, err = r.store.compile(ctx, m.engine, module)
		return code, compilerError(m.name, err)
	}
	if code, err = compileElsewhere(ctx, r.compiler, m.name, module, looks); err != nil {
		return nil, err
	}
	if code == nil && !compiles() {
		m.compiled, _, err = r.store.compile(ctx, m.engine, module)
	} else {
		m.compiled, err = r.store.load(ctx, m.engine, module, code)
	}
	return code, compilerError(m.name, err)
}

// compilerError distinguishes wazero's errors about a module from failures of the compiler.
func compilerError(name string, err error) error {
	if failed := (*panicError)(nil); errors.As(err, &failed) {
		return &CompilerError{name, err}
	}
	return formatError(name, err)
}

// Facts are what can be read off a module.
type Facts = wasm.Facts

// Inspect reads a module and finds what Compile would refuse.  The facts are valid with an *ABIError too.
func Inspect(path string) (Facts, error) {
	module, err := readModule(path)
	if err != nil {
		return Facts{}, err
	}
	exports, err := throwawayExports(context.Background())
	if err != nil {
		return Facts{}, err
	}
	decoded, err := check(moduleName(path), module, exports)
	if abi := (*ABIError)(nil); err != nil && !errors.As(err, &abi) {
		return Facts{}, err
	}
	if invalid := decoded.Validate(); invalid != nil {
		return decoded.Facts, formatError(moduleName(path), invalid)
	}
	return decoded.Facts, err
}

// check decodes a module, but not the bodies of its functions.  The module is valid with an *ABIError too.
func check(name string, file []byte, exports hostExports) (*wasm.Module, error) {
	module, err := wasm.Decode(file)
	if err != nil {
		return nil, formatError(name, err)
	}
	facts := &module.Facts
	if err := exports.checkImports(name, facts); err != nil {
		return module, err
	}
	if facts.SharedMemory {
		return module, &FormatError{
			name, errShared, "a guest has one thread; build it without threads, and run several instead",
		}
	}
	for _, export := range facts.Exports {
		if export.Name == startFunction && export.Kind == wasm.KindFunction {
			return module, nil
		}
	}
	return module, &FormatError{name, errNoStart,
		"build a command, not a library (Go: without -buildmode=c-shared; C: without -mexec-model=reactor)"}
}

func formatError(name string, err error) error {
	if err == nil {
		return nil
	}
	if unsupported := (*wasm.UnsupportedError)(nil); errors.As(err, &unsupported) {
		return &FormatError{name, err, unsupported.Remedy}
	}
	return &FormatError{name, err,
		"a guest is a WebAssembly core module (Go: GOOS=wasip1 GOARCH=wasm go build)"}
}

// Import and Export are what a module needs and offers.
type (
	Import = wasm.Import
	export = wasm.Export
)

// hostExports is what guests can import: signatures by module and name.
type hostExports map[string]map[string]wasm.Signature

// exportsOf is the ABI with a WASI module.
func exportsOf(wasi wazero.CompiledModule) hostExports {
	exports := hostExports{hostfuncs.ModuleName: {}, wasi_snapshot_preview1.ModuleName: {}}
	for _, function := range hostfuncs.Functions() {
		exports[hostfuncs.ModuleName][function.Name] = signature(
			function.Signature(), []api.ValueType{api.ValueTypeI32},
		)
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

// throwawayExports is exportsOf for callers without a runtime.
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

// ABIError means that a guest imports something that this host lacks.
type ABIError struct {
	Module  string // the guest
	Missing []MissingImport
}

func (e *ABIError) Error() string {
	const most = 8
	var text strings.Builder
	fmt.Fprintf(&text, "%s imports what this host (ABI %d.%d) does not have:", e.Module,
		hostfuncs.Current.Major, hostfuncs.Current.Minor)
	for at, missing := range e.Missing {
		if at == most {
			fmt.Fprintf(&text, "\n  and %d more", len(e.Missing)-most)
			break
		}
		fmt.Fprintf(&text, "\n  %s.%s: %s", shown(missing.Module), shown(missing.Name), missing.Why)
	}
	text.WriteString("\n" + e.remedy())
	return text.String()
}

// shown is a name of the module's own in a message: of one line, and not of a page.
func shown(name string) string { return printable.Line(clipped(name)) }

func (e *ABIError) remedy() string {
	for _, missing := range e.Missing {
		if missing.Module == hostfuncs.ModuleName {
			return "use a newer rdmarun, or build the guest with the SDK of this one (rdmarun sdk LANGUAGE DIR)"
		}
	}
	return "build the guest for WASI preview 1 (Go: GOOS=wasip1; C: --target=wasm32-wasi) with the SDK that " +
		"\"rdmarun sdk LANGUAGE DIR\" writes"
}

// checkImports compares the imports of a guest with what the host has, before anything is compiled.
func (exports hostExports) checkImports(module string, facts *wasm.Facts) error {
	e := &ABIError{Module: module}
	optional := slices.ContainsFunc(facts.Exports, func(each export) bool { return each.Name == optionalExport })
	stubs := make(map[string]wasm.Signature)
	for _, each := range facts.Imports {
		why := exports.missing(each)
		if _, known := exports[hostfuncs.ModuleName][each.Name]; why != "" && optional && !known &&
			each.Module == hostfuncs.ModuleName && each.Kind == wasm.KindFunction {
			why = stubProblem(stubs, each)
		}
		if why != "" {
			e.Missing = append(e.Missing, MissingImport{each, why})
		}
	}
	if e.Missing == nil {
		return nil
	}
	return e
}

// optionalExport is what a guest exports that asks has_function before it calls what an older host lacks.
const optionalExport = "rdma_optional"

// maxStubs bounds what a module makes its host make for it.
const maxStubs = 1024

// stubProblem explains why an import of a function that this host lacks cannot become one that answers -ENOSYS.
func stubProblem(stubs map[string]wasm.Signature, each Import) string {
	before, known := stubs[each.Name]
	_, plain := wasm.Types(each.Signature.Params)
	switch {
	case !plain || each.Signature.Results != signature(nil, []api.ValueType{api.ValueTypeI32}).Results:
		return "no such function, and one with other than numbers and an i32 as its result cannot be optional"
	case known && before != each.Signature:
		return "it is imported twice, as two functions"
	case !known && len(stubs) >= maxStubs:
		return "no such function, and more than 1024 optional ones"
	}
	stubs[each.Name] = each.Signature
	return ""
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
