package guest_test

import (
	"path/filepath"
	"strings"
	"testing"

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
		"threads: a crowd that was refused, and went on",
		"librdmacm: a thread's stack has overflowed",
		"udaddy_client | data transfers complete",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not print %q\n%s", want, &text)
		}
	}
}
