// Command gen writes everything that is made from the table of hostfuncs. That is the SDKs' headers and imports, the
// reference, and the golden description of the ABI. Run it by `go generate ./hostfuncs`.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"rdmarun/hostfuncs/model"
)

// root is the top of the repository, seen from hostfuncs, where go generate runs.
const root = ".."

// file is one generated file; its path is relative to the repository.
type file struct {
	path    string
	content []byte
}

func main() {
	files, err := generate(root)
	for _, f := range files {
		if err == nil {
			err = write(filepath.Join(root, filepath.FromSlash(f.path)), f.content)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate makes all files without writing any.
func generate(root string) ([]file, error) {
	m := model.Of()
	goTypes, err := goTypes(&m)
	if err != nil {
		return nil, err
	}
	goImports, err := goImports(&m)
	if err != nil {
		return nil, err
	}
	goStubs, err := goStubs(&m)
	if err != nil {
		return nil, err
	}
	declared, err := readGo(filepath.Join(root, "sdk", "rdma"))
	if err != nil {
		return nil, err
	}
	goNames, err := goNames(&m, declared)
	if err != nil {
		return nil, err
	}
	return []file{
		{"sdk/rdma/abi.gen.go", goTypes},
		{"sdk/rdma/imports.gen.go", goImports},
		{"sdk/rdma/stubs.gen.go", goStubs},
		{"sdk/rdma/names.gen.go", goNames},
		{"sdk/c/rdma.h", cHeader(&m)},
		{"sdk/rust/sys.rs", rustSys(&m)},
		{"sdk/rust/call.rs", rustCall(&m)},
		{"guests/javascript/calls.gen.c", javascriptCalls(&m)},
		{"sdk/javascript/rdma.d.ts", typescript(&m)},
		{"sdk/assemblyscript/sys.ts", assemblySys(&m)},
		{"sdk/assemblyscript/call.ts", assemblyCall(&m)},
		{"docs/abi.md", reference(&m)},
		{"docs/abi.wit", []byte(m.WIT())},
	}, nil
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
