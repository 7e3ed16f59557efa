package guest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// RustNames are those of a stack.
var RustNames = rustNames

// LimitCompiler bounds this process as a compiler's.
var LimitCompiler = limitCompiler

// CompileBytes is Compile for a module in memory.
func (r *Runtime) CompileBytes(ctx context.Context, name string, module []byte) (*Module, error) {
	return r.compileBytes(ctx, name, module, nil)
}

// TrimCache trims the cache in a folder.
func TrimCache(dir string, most int64) error {
	c := &guestCache{}
	var err error
	if c.folder, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer c.close()
	return c.trim(most)
}

// SetBuild makes a runtime that of another build of the program; "" of one that does not know its own.
func SetBuild(r *Runtime, build string) { r.cache.build = build }

// SealAs keeps the content of one file of a cache by the name of another.
func SealAs(dir, from, to string) error {
	c := openGuestCache(dir, nil)
	defer c.close()
	content := c.get(from)
	if content == nil {
		return errors.New(filepath.Join(dir, from) + " is not sealed")
	}
	c.put(to, content)
	return nil
}
