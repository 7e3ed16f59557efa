package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/sdk"
)

const newLong = `Write a first scenario. It is valid: run it, see it pass, then change
it.

  rping      two roles connect, exchange a message and disconnect
  negotiate  what connect and accept agree on, and a rejection with a reason
  sweep      measures bandwidth, latency and connections, with thresholds
  fault      an intended error, and the completion that reports it
  guest      a WebAssembly program plays a role (needs "make guests" or a module)

The other templates write a project for a guest of your own. It is a folder with its
source, the SDK, a Makefile, and a scenario that runs it. "make" builds it there, and
names a missing compiler.

  guest-go   in Go; builds with the Go toolchain
  guest-c    in C, without a C library; builds with clang and lld
  guest-cpp  in C++; builds with clang, lld and the C++ library for WebAssembly
             (libc++-dev-wasm32)
  guest-rust in Rust, without crates; builds with the distribution's rustc, its library
             for WebAssembly (libstd-rust-dev-wasm32) and lld
  guest-assemblyscript  in AssemblyScript; npm fetches the compiler once
  guest-javascript  a script, which needs no compiler, and declarations for editors`

// templateFiles are what new writes; NAME stands for the name in them.
//
//go:embed templates
var templateFiles embed.FS

var templates = []string{
	"rping", "negotiate", "sweep", "fault", "guest", "guest-go", "guest-c", "guest-cpp", "guest-rust",
	"guest-assemblyscript", "guest-javascript",
}

func newNewCommand(a *app) *cobra.Command {
	template := newFormatFlag(templates...)
	module := ""
	command := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a scenario or a guest to begin with",
		Long:  newLong,
		Example: "  rdmarun new my-first\n  rdmarun new scenarios/refused.yaml --template negotiate\n" +
			"  rdmarun new my-guest --template guest-go",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withHint(usageError("what is the new scenario to be called?"),
					"for example: rdmarun new my-first --template rping; the templates are "+
						strings.Join(templates, ", "))
			}
			if p, ok := projects()[template.value]; ok {
				return a.newProject(args[0], p)
			}
			return a.newScenario(args[0], template.value, module)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	command.Flags().Var(template, "template", "begin with this `template`")
	command.Flags().StringVar(&module, "module", "guests/pingpong.wasm", "the guest of --template guest")
	completeFlag(command, "template", cobra.FixedCompletions(templates, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (a *app) newScenario(path, template, module string) error {
	if extension := filepath.Ext(path); extension != ".yaml" && extension != ".yml" {
		path += ".yaml"
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if err := checkName(name, "scenario"); err != nil {
		return err
	}
	text, err := templateFiles.ReadFile("templates/" + template + ".yaml")
	if err != nil {
		return err
	}
	written := strings.ReplaceAll(string(text), "NAME", name)
	if template == "guest" {
		if written, err = withModule(written, path, module); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := writeNew(path, written); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: try\n  rdmarun run %s\n", path, path)
	return err
}

// writeNew writes a file, never over one that is there.
func writeNew(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return existsAlready(path)
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func existsAlready(path string) error {
	return withHint(usageError("%s exists already", path), "choose another name, or remove it")
}

// withModule puts in the path of the guest, as seen from the scenario.
func withModule(text, path, module string) (string, error) {
	if _, err := os.Stat(module); err != nil {
		return "", withHint(
			usageError("--module %s: no such guest", module),
			"\"make guests\" builds those that come with rdmarun; --module names another",
		)
	}
	from, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(module)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	return strings.ReplaceAll(text, "MODULE", relative), err
}

// checkName refuses a name that is not valid in each place where a template has one.
func checkName(name, of string) error {
	if isPlainName(name) {
		return nil
	}
	return withHint(
		usageError("%q: the name of a %s has letters, digits, - and _", name, of), "for example: rdmarun new my-first",
	)
}

func isPlainName(name string) bool {
	return name != "" && !slices.ContainsFunc([]rune(name), func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// project is a user's own guest, as new writes it: a folder of files, with the SDK in a folder within.
type project struct {
	language string // of the SDK
	folder   string // of the templates; their files have their own names but for:
	renamed  map[string]string
	ignored  string // lines of .gitignore, in addition to the module
	module   string // what the scenario runs, where it is not made by make
}

// sdkFolder is where a project has its SDK.
const sdkFolder = "rdma"

// projects are the templates that are projects.
func projects() map[string]project {
	return map[string]project{
		// A file go.mod would make a module of the templates' own folder, which could not be embedded.
		"guest-go": {
			language: "go", folder: "guest-go", renamed: map[string]string{"go.mod.text": "go.mod"},
		},
		"guest-c": {
			language: "c", folder: "guest-c", renamed: map[string]string{"guest.c": "NAME.c"}, ignored: "/*.o\n",
		},
		"guest-cpp": {
			language: "c", folder: "guest-cpp", renamed: map[string]string{"guest.cpp": "NAME.cpp"}, ignored: "/*.o\n",
		},
		"guest-assemblyscript": {
			language: "assemblyscript", folder: "guest-assemblyscript",
			renamed: map[string]string{"guest.ts": "NAME.ts"}, ignored: "/node_modules/\n/*.wasm.map\n",
		},
		"guest-javascript": {
			language: "javascript", folder: "guest-javascript", renamed: map[string]string{"guest.js": "NAME.js"},
			module: "NAME.js",
		},
		// The source is main.rs, as a NAME.rs could be the module of the SDK.
		"guest-rust": {
			language: "rust", folder: "guest-rust", renamed: map[string]string{"Cargo.toml.text": "Cargo.toml"},
			ignored: "/target/\n/Cargo.lock\n",
		},
	}
}

// newProject writes a project to a folder of its own.
func (a *app) newProject(directory string, p project) error {
	directory = filepath.Clean(directory)
	name := filepath.Base(directory)
	if err := checkName(name, "guest"); err != nil {
		return err
	}
	files, err := p.files(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(directory, 0o755); errors.Is(err, fs.ErrExist) {
		return existsAlready(directory)
	} else if err != nil {
		return err
	}
	for file, text := range files {
		if err := writeNew(filepath.Join(directory, file), text); err != nil {
			return err
		}
	}
	if err := sdk.Write(p.language, filepath.Join(directory, sdkFolder)); err != nil {
		return err
	}
	build := "  make -C " + directory + "\n"
	if p.module != "" {
		build = ""
	}
	_, err = fmt.Fprintf(
		a.stdout, "%s: try\n%s  rdmarun run %s\n", directory, build, filepath.Join(directory, name+".yaml"),
	)
	return err
}

// files are the project's own files by name, for a guest of that name.
func (p project) files(name string) (map[string]string, error) {
	entries, err := templateFiles.ReadDir("templates/" + p.folder)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{"NAME.yaml": "templates/guest-project.yaml"}
	for _, entry := range entries {
		file := entry.Name()
		if other, ok := p.renamed[file]; ok {
			file = other
		}
		paths[file] = "templates/" + p.folder + "/" + entry.Name()
	}
	files := map[string]string{}
	if p.module == "" {
		files[".gitignore"] = "/" + name + ".wasm\n" + p.ignored
	}
	for file, path := range paths {
		text, err := templateFiles.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if p.module != "" {
			text = []byte(strings.ReplaceAll(string(text), "NAME.wasm", p.module))
		}
		files[strings.ReplaceAll(file, "NAME", name)] = strings.ReplaceAll(string(text), "NAME", name)
	}
	return files, nil
}

const sdkLong = `Write the SDK for guests, in the version of this rdmarun. DIR is new,
or has an SDK of an earlier rdmarun, which is updated.

  go    a module of its own, rdmarun/sdk/rdma. No registry has it: add the two lines
        that this command prints to the guest's go.mod
  c     rdma.h, for any compiler with WebAssembly as a target, and helpers.h, which
        posts one request, waits for one event, and the like
  assemblyscript  modules to import: sys (the ABI), rdma (classes), wasi
  librdmacm  for existing programs: librdmacm and libibverbs over those functions, and
             "build", which makes a guest from a program's unchanged source
  javascript  rdma.d.ts, by which editors complete and check scripts
  rust  a module without crates, for "mod rdma;", or a crate; Rust 1.63 or newer

"rdmarun new NAME --template guest-go" (or guest- and another language) writes a guest with its SDK.`

func newSDKCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "sdk " + strings.Join(sdk.Languages(), "|") + " DIR",
		Short:   "Write the SDK for guests in a language",
		Long:    sdkLong,
		Example: "  rdmarun sdk go rdma\n  rdmarun sdk c include",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := oneOf(args[0], sdk.Languages()); err != nil {
					return usageError("sdk: %w", err)
				}
			}
			if len(args) != 2 {
				return withHint(
					usageError("the SDK for which language, and where to?"),
					"for example: rdmarun sdk go rdma; the languages are "+strings.Join(sdk.Languages(), ", "),
				)
			}
			return a.writeSDK(args[0], args[1])
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return sdk.Languages(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
}

func (a *app) writeSDK(language, directory string) error {
	directory = filepath.Clean(directory)
	err := sdk.Write(language, directory)
	if occupied := (*sdk.OccupiedError)(nil); errors.As(err, &occupied) {
		return withHint(withExit(exitUsage, err), "name a folder that is new, or has an SDK alone")
	}
	if err != nil {
		return err
	}
	switch language {
	case "go":
		where := relativeImport(directory)
		if strings.ContainsAny(where, " \t\"'`()[]{},") {
			where = strconv.Quote(where)
		}
		_, err = fmt.Fprintf(a.stdout, "%s: import %q; in go.mod\n  require %s v0.0.0\n  replace %s => %s\n",
			directory, sdk.GoModule, sdk.GoModule, sdk.GoModule, where)
	case "assemblyscript":
		_, err = fmt.Fprintf(a.stdout, "%s: import { Pd } from \"%s/rdma\"; build with\n"+
			"  asc guest.ts -O2 --runtime incremental --use abort=%s/wasi/abort -o guest.wasm\n",
			directory, relativeImport(directory), directory)
	case "javascript":
		_, err = fmt.Fprintf(
			a.stdout, "%s: name %s/rdma.d.ts in the \"include\" of a jsconfig.json\n", directory,
			relativeImport(directory),
		)
	case "librdmacm":
		_, err = fmt.Fprintf(
			a.stdout, "%s: build a guest of a program's source with\n  %s/build guest.wasm source.c\n", directory,
			relativeImport(directory),
		)
	case "rust":
		_, err = fmt.Fprintf(a.stdout, "%s: #[path = %q] mod rdma; build with\n"+
			"  rustc --edition 2021 --target wasm32-wasi -C linker=wasm-ld guest.rs -o guest.wasm\n",
			directory, directory+"/mod.rs")
	default:
		_, err = fmt.Fprintf(a.stdout, "%s: #include \"rdma.h\"; build with\n  clang --target=wasm32 -nostdlib "+
			"-mbulk-memory -g -Wl,--no-entry,--stack-first -I%s guest.c -o guest.wasm\n",
			directory, directory)
	}
	return err
}

// relativeImport is a folder as a module's import names it.
func relativeImport(directory string) string {
	if filepath.IsAbs(directory) || strings.HasPrefix(directory, ".") {
		return directory
	}
	return "./" + directory
}
