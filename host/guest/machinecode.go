package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
)

// machineCode is the code that wazero has compiled from a module, in wazero's own format, with the name by which
// wazero asks for it. The name is a hash of the module, of the processor's features and of what makes the code end.
type machineCode struct {
	name  codeName
	bytes []byte
}

type codeName = [32]byte

// codeOf reads code that follows its name.
func codeOf(content []byte) *machineCode {
	code := &machineCode{bytes: content[len(codeName{}):]}
	copy(code.name[:], content)
	return code
}

// codeStore replaces wazero's cache on disk. It gives wazero the code of one module from memory, and accepts the code
// that wazero compiles. Its user holds Runtime.compiling.
//
// wazero's own cache is a folder, and wazero executes the file that is there when it looks.  Another process could
// replace the file after any check.
type codeStore struct {
	offered *machineCode
	made    *machineCode
	// compiles lets wazero compile what is not offered.
	compiles bool
}

var errNotCompiled = errors.New("its machine code is not that of this module, or of another processor")

// Get implements wazero's internal filecache.Cache.
func (s *codeStore) Get(name codeName) (io.ReadCloser, bool, error) {
	switch {
	case s.offered != nil && s.offered.name == name:
		return io.NopCloser(bytes.NewReader(s.offered.bytes)), true, nil
	case s.compiles:
		return nil, false, nil
	}
	return nil, false, errNotCompiled
}

// Add implements wazero's internal filecache.Cache.
func (s *codeStore) Add(name codeName, content io.Reader) error {
	code, err := io.ReadAll(io.LimitReader(content, maxCode+1))
	if err == nil && len(code) > maxCode {
		err = fmt.Errorf("its machine code has more than %dMiB", maxCode>>20)
	}
	s.made = &machineCode{name, code}
	return err
}

// Delete implements wazero's internal filecache.Cache: wazero calls it before it compiles instead of what it cannot
// read.
func (s *codeStore) Delete(codeName) error {
	return errNotCompiled
}

// newCodeStore makes a store, and the cache by which wazero's runtimes use it.
func newCodeStore() (*codeStore, wazero.CompilationCache, error) {
	s, cache := &codeStore{}, wazero.NewCompilationCache()
	// wazero has an interface for this, but no function that takes one.
	field := reflect.ValueOf(cache).Elem().FieldByName("fileCache")
	if !field.IsValid() || !reflect.TypeOf(s).AssignableTo(field.Type()) {
		return nil, nil, errors.New("this version of wazero keeps compiled code in another way than rdmarun knows")
	}
	reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(s))
	return s, cache, nil
}

// load gives a module's code to an engine.
func (s *codeStore) load(
	ctx context.Context, engine wazero.Runtime, module []byte, code *machineCode,
) (wazero.CompiledModule, error) {
	s.offered = code
	defer func() { s.offered = nil }()
	return compileSafely(ctx, engine, module)
}

// compile has an engine compile a module.  The code is nil where wazero interprets.
func (s *codeStore) compile(
	ctx context.Context, engine wazero.Runtime, module []byte,
) (wazero.CompiledModule, *machineCode, error) {
	s.made, s.compiles = nil, true
	defer func() { s.made, s.compiles = nil, false }()
	compiled, err := compileSafely(ctx, engine, module)
	return compiled, s.made, err
}

// compileSafely returns a panic of wazero as an error.
func compileSafely(
	ctx context.Context, engine wazero.Runtime, module []byte,
) (compiled wazero.CompiledModule, err error) {
	defer func() {
		if value := recover(); value != nil {
			compiled, err = nil, &panicError{value, debug.Stack()}
		}
	}()
	return engine.CompileModule(ctx, module)
}

// panicError is a panic of the compiler.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("the compiler failed: %v", e.value) }
