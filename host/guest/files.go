package guest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"rdmarun/hostfuncs"
)

// files is the file system of a guest: what is there from the beginning, to be read.  What the guest has open counts as
// its descriptors.
type files struct {
	budget *hostfuncs.Budget
	nodes  map[string]*node // by path; "." is the root
	full   bool             // the last Open was one too many
}

// node is a file, or a folder if it has a mode of one.
type node struct {
	name    string
	mode    fs.FileMode
	text    string
	entries []fs.DirEntry // in order
}

// openCost is what the host keeps for a file that is open.
var openCost = hostfuncs.Cost{Memory: 1 << 10, Files: 1}

// newFiles makes the file system of texts; nil without any.
func newFiles(texts map[string]string, budget *hostfuncs.Budget) *files {
	if len(texts) == 0 {
		return nil
	}
	f := &files{budget: budget, nodes: make(map[string]*node)}
	f.folder(".")
	for name, text := range texts {
		made := &node{name: path.Base(name), mode: 0o444, text: text}
		f.nodes[name] = made
		f.enter(f.folder(path.Dir(name)), made)
	}
	return f
}

func (f *files) enter(folder, made *node) {
	at, _ := slices.BinarySearchFunc(folder.entries, made.name, func(e fs.DirEntry, name string) int {
		return strings.Compare(e.Name(), name)
	})
	folder.entries = slices.Insert(folder.entries, at, fs.FileInfoToDirEntry(made))
}

// folder finds a folder, or makes it and those around it.
func (f *files) folder(name string) *node {
	found := f.nodes[name]
	if found == nil {
		found = &node{name: path.Base(name), mode: fs.ModeDir | 0o555}
		f.nodes[name] = found
		if name != "." {
			f.enter(f.folder(path.Dir(name)), found)
		}
	}
	return found
}

// Open opens a file or a folder.
func (f *files) Open(name string) (fs.File, error) {
	found := f.nodes[name]
	f.full = false
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	case found == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err := f.budget.Charge(openCost); err != nil {
		f.full = true
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	opened := &openFile{node: found, files: f, Reader: strings.NewReader(found.text), rest: found.entries}
	if found.IsDir() {
		return openFolder{opened}, nil
	}
	return opened, nil
}

func (n *node) Name() string       { return n.name }
func (n *node) Size() int64        { return int64(len(n.text)) }
func (n *node) Mode() fs.FileMode  { return n.mode }
func (n *node) ModTime() time.Time { return time.Unix(0, 0) }
func (n *node) IsDir() bool        { return n.mode.IsDir() }
func (n *node) Sys() any           { return nil }

// openFile is a file that a guest reads.
type openFile struct {
	*strings.Reader
	node   *node
	files  *files
	rest   []fs.DirEntry
	closed bool
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.node, nil }

func (o *openFile) Close() error {
	if o.closed {
		return fs.ErrClosed
	}
	o.closed = true
	o.files.budget.Credit(openCost)
	return nil
}

// openFolder is a folder that a guest lists.
type openFolder struct{ *openFile }

// Read is refused.
func (openFolder) Read([]byte) (int, error) { return 0, syscall.EISDIR }

// ReadDir returns the next entries, at most so many as are asked for, or all for 0 and less.
func (o openFolder) ReadDir(most int) ([]fs.DirEntry, error) {
	n := len(o.rest)
	if most > 0 {
		if n == 0 {
			return nil, io.EOF
		}
		n = min(n, most)
	}
	next := o.rest[:n:n]
	o.rest = o.rest[n:]
	return next, nil
}

// maxPath is the longest path, in bytes, and maxBuffers how many buffers one read fills.
const (
	maxPath    = 4096
	maxBuffers = 1024
)

// wazeroWASI has the functions of wazero that those here are in front of.
var wazeroWASI = sync.OnceValues(func() (functions map[string]api.GoModuleFunction, err error) {
	ctx := context.Background()
	engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	builder := engine.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(builder)
	compiled, err := builder.Compile(ctx)
	if err != nil {
		return nil, err
	}
	functions = make(map[string]api.GoModuleFunction)
	for name, definition := range compiled.ExportedFunctions() {
		if function, is := definition.GoFunction().(api.GoModuleFunction); is {
			functions[name] = function
		}
	}
	return functions, nil
})

// filesOf are those of the guest that calls; nil for none.
func filesOf(ctx context.Context) *files { return ctx.Value(guestKey{}).(*Guest).files }

// onPath is a function of wazero on a path.  Parameter `length` is the length of the path.  It does not copy a path
// that is too long.
func onPath(name string, length int) api.GoModuleFunc {
	return func(ctx context.Context, module api.Module, stack []uint64) {
		files := filesOf(ctx)
		switch {
		case files == nil:
			stack[0] = wasiEBADF
			return
		case uint32(stack[length]) > maxPath:
			stack[0] = wasiENAMETOOLONG
			return
		}
		files.full = false
		delegate(ctx, name, module, stack)
		if stack[0] != wasiSuccess && files.full {
			stack[0] = wasiEMFILE
		}
	}
}

// onBuffers is a function of wazero on buffers.  Its third parameter is their number.
func onBuffers(name string) api.GoModuleFunc {
	return func(ctx context.Context, module api.Module, stack []uint64) {
		switch {
		case filesOf(ctx) == nil:
			stack[0] = wasiEBADF
		case uint32(stack[2]) > maxBuffers:
			stack[0] = wasiEINVAL
		default:
			delegate(ctx, name, module, stack)
		}
	}
}

func delegate(ctx context.Context, name string, module api.Module, stack []uint64) {
	functions, err := wazeroWASI()
	if err != nil {
		panic(err) // wazero could not compile its own functions
	}
	functions[name].Call(ctx, module, stack)
}

// onlyRead is a function that would change a file.
func onlyRead(ctx context.Context, _ api.Module, stack []uint64) {
	if stack[0] = wasiEBADF; filesOf(ctx) != nil {
		stack[0] = wasiEROFS
	}
}
