package compile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rdmarun/host/bounded"
	"rdmarun/host/guest"
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// Bounds of what a guest or a program of a scenario reads.
const (
	maxInput  = 16 << 20 // bytes of a file
	maxInputs = 64 << 20 // of all those of one
	maxFiles  = 1000     // that one has
)

// inputs are what the file gives a guest or a program.
type inputs struct {
	env, files []syntax.Pair
	stdin      *syntax.Node
}

func inputsOf(written *ast.Guest) inputs { return inputs{written.Env, written.Files, written.Stdin} }

// inputFiles reads the files of the host that a guest or a program is given, and lists them.  It also checks that the
// names for them do not conflict.
func (x *expander) inputFiles(written inputs) []string {
	for _, pair := range written.env {
		if name := pair.Key.Value; name == "" || strings.ContainsAny(name, "=\x00") {
			x.errors.Report(diag.BadName, pair.Key.Span(), "%q cannot be the name of a variable", name)
		}
	}
	x.inputPaths(written.files)
	var found []string
	size := 0
	for _, node := range append([]*syntax.Node{written.stdin}, values(written.files)...) {
		file := fileOf(node)
		if file == nil {
			continue
		}
		name, known := x.known(&verb.Argument{Name: "file", Type: verb.Text}, file, x.global).(string)
		if !known || x.options.InspectModule == nil {
			continue
		}
		located, text, err := x.readInput(name)
		if size += len(text); err == nil && size > maxInputs {
			err = fmt.Errorf("with it these files have more than %dMiB together", maxInputs>>20)
		}
		if err != nil {
			x.unreadableInput(file, err)
			continue
		}
		if !slices.Contains(found, located) {
			found = append(found, located)
		}
		x.inputs[file] = text
	}
	return found
}

var (
	errLeads   = errors.New("it is not in the folder of the scenario")
	errNoFile  = errors.New("it is not a file")
	errTooLong = fmt.Errorf("it has more than %dMiB", maxInput>>20)
)

func (x *expander) unreadableInput(file *syntax.Node, err error) {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if strings.Contains(err.Error(), "escapes") { // package os has no value for that
		err = errLeads
	}
	wrong := x.errors.Report(diag.Unreadable, file.Span(), "the file cannot be read: %s", err)
	if errors.Is(err, errLeads) {
		wrong.WithHint("nothing else of the host is read; copy it there, or move the scenario to a folder above")
	}
}

// readInput reads a file of the scenario's folder.  Neither its path nor a link leads out of that.
func (x *expander) readInput(name string) (located, text string, err error) {
	if !filepath.IsLocal(name) {
		return "", "", errLeads
	}
	scenario := x.file.Root.Source.Name
	located = x.options.locate(filepath.Join(filepath.Dir(scenario), name))
	folder := filepath.Dir(x.options.locate(scenario))
	var read []byte
	if located == filepath.Join(folder, name) {
		read, err = readIn(folder, name)
	} else { // a pack's, which the host has put elsewhere
		read, err = bounded.Read(located, maxInput+1)
	}
	if err == nil && len(read) > maxInput {
		err = errTooLong
	}
	return located, string(read), err
}

func readIn(folder, name string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer would block
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errNoFile)
	}
	return io.ReadAll(io.LimitReader(file, maxInput+1))
}

// inputPaths checks the paths by which a guest or a program finds its files.
func (x *expander) inputPaths(files []syntax.Pair) {
	if len(files) > maxFiles {
		x.errors.Report(diag.OutOfRange, files[maxFiles].Key.Span(), "there are %d files at most", maxFiles)
	}
	seen := make(map[string]*syntax.Node)
	for _, pair := range files {
		name := inputPath(pair.Key)
		if !fs.ValidPath(name) || name == "." || strings.ContainsRune(name, 0) {
			x.errors.Report(diag.BadName, pair.Key.Span(), "%q cannot be the path of a file", pair.Key.Value).
				WithHint("a guest opens it so: /etc/peer.conf; a program in its folder: peer.conf")
			continue
		}
		seen[name] = pair.Key
	}
	for _, pair := range files {
		name := inputPath(pair.Key)
		for folder := path.Dir(name); folder != "." && folder != "/"; folder = path.Dir(folder) {
			if seen[folder] != nil {
				x.errors.Report(
					diag.Conflict, pair.Key.Span(), "%q is a file, so it is not a folder", seen[folder].Value,
				)
				break
			}
		}
		if first := seen[name]; first != nil && first != pair.Key {
			x.errors.Report(diag.Conflict, first.Span(), "%q is the same file", pair.Key.Value)
		}
	}
}

// inputPath is the path of a file as package io/fs has paths.
func inputPath(key *syntax.Node) string { return strings.TrimPrefix(key.Value, "/") }

// fileOf is the name of a file of the host; nil for what is a text.
func fileOf(node *syntax.Node) *syntax.Node {
	if node == nil {
		return nil
	}
	return node.Get("file")
}

func values(pairs []syntax.Pair) []*syntax.Node {
	nodes := make([]*syntax.Node, len(pairs))
	for i, pair := range pairs {
		nodes[i] = pair.Value
	}
	return nodes
}

// finding is one thing of what a guest or a program finds when it starts.
type finding struct {
	value *Value
	put   func(to *testbed.Input, value any)
}

// input compiles what a guest or a program finds when it starts, and what a guest may do (nil: everything); nil for
// nothing.
func (x *expander) input(written inputs, allow *ast.Allow, at place) *Value {
	var parts []finding
	for _, pair := range written.env {
		name := pair.Key.Value
		parts = append(parts, finding{
			x.variable(pair, at), func(to *testbed.Input, value any) { to.Env[name] = value.(string) },
		})
	}
	for _, pair := range written.files {
		name := inputPath(pair.Key)
		parts = append(parts, finding{
			x.content(pair.Value, at), func(to *testbed.Input, value any) { to.Files[name] = value.(string) },
		})
	}
	if written.stdin != nil {
		parts = append(parts, finding{
			x.content(written.stdin, at), func(to *testbed.Input, value any) { to.Stdin = value.(string) },
		})
	}
	if allow != nil {
		parts = append(parts, x.allowed(allow, at)...)
	}
	if len(parts) == 0 {
		return nil
	}
	values := make([]*Value, len(parts))
	for i := range parts {
		if values[i] = parts[i].value; values[i] == nil {
			return nil
		}
	}
	return x.combined(diag.Span{}, values, func(values []any) (any, error) {
		input := testbed.Input{Env: make(map[string]string), Files: make(map[string]string)}
		for i, value := range values {
			parts[i].put(&input, value)
		}
		return input, nil
	})
}

// variable compiles a variable of the environment.
func (x *expander) variable(pair syntax.Pair, at place) *Value {
	return x.made(x.text(pair.Key.Value, pair.Value, at), pair.Value, func(text string) (any, error) {
		if strings.ContainsRune(text, 0) {
			return nil, fmt.Errorf("the variable %s has a zero byte", pair.Key.Value)
		}
		return text, nil
	})
}

// content compiles what a guest or a program reads.
func (x *expander) content(node *syntax.Node, at place) *Value {
	switch file := fileOf(node); {
	case file != nil:
		return constant(x.inputs[file], node.Span())
	case node.Kind == syntax.Mapping:
		node = node.Get("text")
	}
	return x.text("text", node, at)
}

// made makes something of a text.
func (x *expander) made(text *Value, node *syntax.Node, of func(text string) (any, error)) *Value {
	if text == nil {
		return nil
	}
	return x.combined(node.Span(), []*Value{text}, func(values []any) (any, error) { return of(values[0].(string)) })
}

// allowed compiles what a guest may do.  A key without items allows nothing.
func (x *expander) allowed(allow *ast.Allow, at place) []finding {
	var parts []finding
	each := func(
		key string, nodes []*syntax.Node, begin func(*testbed.Input), value func(*syntax.Node) *Value,
		put func(*testbed.Input, any),
	) {
		if allow.Node.Get(key) == nil {
			return
		}
		parts = append(parts, finding{
			constant(key, allow.Node.Span()), func(to *testbed.Input, _ any) { begin(to) },
		})
		for _, node := range nodes {
			parts = append(parts, finding{value(node), put})
		}
	}
	rule := func(node *syntax.Node) *Value {
		return x.made(x.text("a rule", node, at), node, func(text string) (any, error) { return guest.ParseRule(text) })
	}
	each("bind", allow.Bind, func(to *testbed.Input) { to.Rules.Bind = []guest.AddressRule{} }, rule,
		func(to *testbed.Input, value any) {
			to.Rules.Bind = append(to.Rules.Bind, value.(guest.AddressRule))
		})
	each("connect", allow.Connect, func(to *testbed.Input) { to.Rules.Connect = []guest.AddressRule{} }, rule,
		func(to *testbed.Input, value any) {
			to.Rules.Connect = append(to.Rules.Connect, value.(guest.AddressRule))
		})
	each("devices", allow.Devices, func(to *testbed.Input) { to.Rules.Devices = []string{} },
		func(node *syntax.Node) *Value { return x.text("a device", node, at) },
		func(to *testbed.Input, value any) {
			to.Rules.Devices = append(to.Rules.Devices, value.(string))
		})
	each("calls", allow.Calls, func(to *testbed.Input) { to.Deny = guest.AllCalls() },
		func(node *syntax.Node) *Value {
			return x.scalar(&verb.Argument{Name: "calls", Type: verb.Word, Words: guest.CallNames()}, node, at)
		},
		func(to *testbed.Input, value any) { to.Deny &^= guest.Calls(value.(string)) })
	return parts
}
