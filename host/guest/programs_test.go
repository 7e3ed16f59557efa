package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/guest"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/internal/toolchain"
)

// programs is the scenario with programs of rdma-core, each of which is two guests.
const programs = "../../guests/librdmacm/programs.yaml"

// modules is where they are built.
const modules = "../../build/rdma-core"

// needModules skips what needs programs of rdma-core where they are not built, with the reason.
func needModules(t *testing.T) {
	built, err := filepath.Glob(filepath.Join(modules, "r*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if len(built) == 0 {
		toolchain.Lacks(t, "no program of rdma-core was built: make rdma-core fetches their source")
	}
}

// Programs that were written for librdmacm and libibverbs run as guests, and do what they do anywhere else.
func TestProgramsOfRdmaCore(t *testing.T) {
	needModules(t)
	checked := scenario.Check([]string{programs}, scenario.Params{})
	var text strings.Builder
	if checked.Errors.Len()+checked.Errors.Warnings() > 0 {
		t.Fatal(checked.Errors.Render(&text, diag.Painter{}), &text)
	}
	totals, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", GuestCache: cacheDir,
		Consumers: []record.Consumer{terminal.NewHuman(&text, terminal.HumanOptions{})},
	})
	if err != nil || totals.Failed > 0 || totals.Passed == 0 {
		t.Fatalf("%v\n%s", err, &text)
	}
	for _, want := range []string{
		"rdma_client | rdma_client: end 0",
		"ucmatose_client | migrating to new event channel",
		"srq_client | 500 iters in",
		"uc_client | 500 iters in",
		"threads: all that was promised holds",
		"verbs: all that was promised holds",
		"posix: all that was promised holds",
		"posix_client | posix: exchanged messages",
		"| errx says 5",
		"librdmacm: the program ends by signal 14: Alarm clock",
		"threads: a crowd that was refused, and went on",
		"librdmacm: a thread's stack has overflowed",
		"udaddy_client | data transfers complete",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not print %q\n%s", want, &text)
		}
	}
}

// The build script takes any main, and names sources and pages in what it says.
func TestBuildOfPrograms(t *testing.T) {
	toolchain.Need(t, "c")
	script, err := filepath.Abs("../../sdk/librdmacm/build")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	build := func(name, source string, environment ...string) (module, said string, failed error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(script, "odd.wasm", name)
		command.Dir = folder
		command.Env = append(append(os.Environ(), "LIBRDMACM="+filepath.Join(folder, "librdmacm.a")), environment...)
		out, err := command.CombinedOutput()
		return filepath.Join(folder, "odd.wasm"), string(out), err
	}
	if out, err := exec.Command(script, filepath.Join(folder, "librdmacm.a")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	for _, main := range []string{
		"int main(void)\n{", "int main() {", "main(argc, argv) int argc; char **argv; {",
		"int main(int argc, char **argv) {",
	} {
		module, said, err := build(
			"odd.c", "#include <stdio.h>\nint helper(void);\n"+main+
				"\n\tputs(\"hello\"); return 3; }\nint helper(void) { return 0; }\n",
		)
		if err != nil || said != "" {
			t.Errorf("%s: %v\n%s", main, err, said)
			continue
		}
		m, err := r.Compile(testContext(t), module)
		if err != nil {
			t.Fatal(err)
		}
		var out output
		if result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &out}); result.ExitCode != 3 ||
			out.String() != "hello\n" {
			t.Errorf("%s: %v\n%s", main, result.Err, &out)
		}
	}
	// Without a return, main has returned 0.
	names := []string{"odd.c"}
	if have, err := toolchain.Have("cpp"); err != nil {
		t.Fatal(err)
	} else if have {
		names = append(names, "odd.cpp")
	}
	for _, source := range []string{
		"int main(void) { printf(\"%d\\n\", 12345); }",
		"int main(int argc, char **argv) { printf(\"%d\\n\", 12344 + argc); }",
		"void *run(void *p) { return p; }\n" +
			"int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); " +
			"printf(\"%d\\n\", 12345); }",
	} {
		for _, name := range names {
			text := "#include <pthread.h>\n#include <stdio.h>\n" + source + "\n"
			module, said, err := build(name, text)
			if err != nil || said != "" {
				t.Errorf("%s: %s: %v\n%s", name, source, err, said)
				continue
			}
			m, err := r.Compile(testContext(t), module)
			if err != nil {
				t.Fatal(err)
			}
			var out output
			result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &out})
			if result.Err != nil || result.ExitCode != 0 || out.String() != "12345\n" {
				t.Errorf("%s: %s: exit code %d, %v\n%s", name, source, result.ExitCode, result.Err, &out)
			}
		}
	}
	_, said, err := build("odd.c", "int teleport(void); int main(void) { return teleport(); }")
	if err == nil || !strings.Contains(said, "odd.c: undefined symbol: teleport") ||
		!strings.Contains(said, "docs/librdmacm.md") || strings.Contains(said, "program1") {
		t.Errorf("%v\n%s", err, said)
	}
	if _, said, err = build("odd.c", "int main(void) { return 0; }", "RDMA_HEADERS=/nowhere"); err == nil ||
		!strings.Contains(said, "/nowhere has no rdma/rdma_cma.h") {
		t.Errorf("%v\n%s", err, said)
	}
	for _, source := range []string{
		"#include <errno.h>\n_Thread_local int mine; int main(void) { return mine + errno; }",
		"#include <errno.h>\n#include <pthread.h>\n" +
			"int mine; int main(void) { pthread_t t; return pthread_create(&t, 0, 0, 0) + errno + mine; }",
	} {
		if _, said, err := build("odd.c", source); err != nil {
			t.Errorf("%s: %v\n%s", source, err, said)
		}
	}
	// Each thread has its own variables and errno.
	threads, err := os.ReadFile("testdata/threads.c")
	if err != nil {
		t.Fatal(err)
	}
	module, said, err := build("odd.c", string(threads))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	m, err := r.Compile(testContext(t), module)
	if err != nil {
		t.Fatal(err)
	}
	var printed output
	if result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &printed}); result.Err != nil ||
		result.ExitCode != 0 {
		t.Errorf("exit code %d, %v: %s", result.ExitCode, result.Err, &printed)
	}
	// C++ destroys the objects of a thread at its end, and those of main at exit.
	if len(names) > 1 {
		objects, err := os.ReadFile("testdata/objects.cpp")
		if err != nil {
			t.Fatal(err)
		}
		if module, said, err = build("odd.cpp", string(objects)); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if m, err = r.Compile(testContext(t), module); err != nil {
			t.Fatal(err)
		}
		var out output
		const want = "made 2, destroyed 21, destroyed 7, joined, destroyed 20, destroyed 5, "
		if result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &out}); result.Err != nil ||
			out.String() != want {
			t.Errorf("%v: %s", result.Err, &out)
		}
	}
	text := `#include <errno.h>
#include <stdio.h>
#include <string.h>
int main(void) { printf("%s, %s", strerror(ENODATA), strerror(EINVAL)); return 0; }`
	if module, said, err = build("odd.c", text); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if m, err = r.Compile(testContext(t), module); err != nil {
		t.Fatal(err)
	}
	var out output
	if r.Run(testContext(t), m, guest.Config{
		Provider: p, Stdout: &out,
	}); out.String() != "No data available, Invalid argument" {
		t.Errorf("%s", &out)
	}
}
