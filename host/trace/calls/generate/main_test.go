package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/trace/calls"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	folder := t.TempDir()
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"calls.gen.h", "calls.gen.c"} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../../../rdmacore/trace", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("rdmacore/trace/%s is out of date: go generate ./host/trace/calls", name)
		}
	}
}

// A function of each kind, as the library has it.
func TestFunctions(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"a symbol": {
			"rdma_bind_addr", []string{
				"TRACE_EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)",
				"trace_next(TRACE_rdma_bind_addr)", "return -1;", "trace_put_sockaddr(&call, addr);",
				"trace_adopt_id(id);",
			},
		},
		"a member of the context": {
			"ibv_create_cq_ex", []string{
				"static struct ibv_cq_ex *trace_ibv_create_cq_ex(", "extended.create_cq_ex;",
				"trace_adopt_queue(result, cq_attr->wc_flags);",
			},
		},
		"an errno as its result": {"ibv_destroy_cq", []string{"return ENOSYS;"}},
		"results":                {"rdma_create_id", []string{"trace_put(&call, (uintptr_t)(id ? *id : 0));"}},
	} {
		table, err := calls.Load()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for _, call := range table.Calls {
			if call.Name == c.line {
				function(&out, call)
			}
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
	}
}
