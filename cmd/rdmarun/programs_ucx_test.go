package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// useUCX has UCX use the device and nothing else: neither shared memory nor TCP.
func useUCX(t *testing.T, transports string) {
	t.Helper()
	t.Setenv("UCX_TLS", transports)
	t.Setenv("UCX_NET_DEVICES", "soft0:1")
	t.Setenv("UCX_WARN_UNUSED_ENV_VARS", "n")
}

// TestUCX: rc makes its connections by datagrams of ud.
func TestUCX(t *testing.T) {
	var fabrics fabrics
	for _, test := range []struct{ transports, what string }{
		{"rc", "-t tag_lat"}, {"rc", "-t tag_bw -s 1000000"}, {"rc", "-t ucp_put_bw -s 65536"},
		{"rc", "-t ucp_get -s 4096"},
		{"rc", "-t ucp_fadd"}, {"rc", "-t ucp_cswap"}, {"ud", "-t tag_lat"}, {"ud", "-t stream_bw -s 100000"},
	} {
		t.Run(test.transports+" "+test.what, func(t *testing.T) {
			useUCX(t, test.transports)
			port := requirePort(t)
			fabric := fabrics.name()
			server := startProgram(t, fabric, "ucx_perftest", "-p", port)
			awaitPort(t, port)
			words := append(
				[]string{"ucx_perftest", "127.0.0.1", "-p", port, "-n", "20", "-w", "2"}, strings.Fields(test.what)...,
			)
			startProgram(t, fabric, words...).succeed(t)
			server.succeed(t)
		})
	}
}

// TestUCXGID: which of the addresses it uses is the user's choice.
func TestUCXGID(t *testing.T) {
	var fabrics fabrics
	useUCX(t, "rc")
	t.Setenv("UCX_IB_GID_INDEX", "0")
	port := requirePort(t)
	fabric := fabrics.name()
	server := startProgram(t, fabric, "ucx_perftest", "-p", port)
	awaitPort(t, port)
	startProgram(t, fabric, "ucx_perftest", "127.0.0.1", "-p", port, "-n", "20", "-w", "2", "-t", "tag_lat").succeed(t)
	server.succeed(t)
}

// TestOpenMPI: its launcher starts the ranks, which inherit the library.
func TestOpenMPI(t *testing.T) {
	compiler, err := exec.LookPath("mpicc")
	if err != nil {
		t.Skipf("%v: it is in one of the packages of \"tools/setup.sh test\"", err)
	}
	program := filepath.Join(t.TempDir(), "mpi")
	if output, err := exec.Command(
		compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-o", program, "testdata/programs/mpi.c",
	).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	// CI runs as root, and the launcher requires a flag for that.
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	var fabrics fabrics
	for _, test := range []struct{ transports, ranks string }{{"rc,self", "2"}, {"ud,self", "2"}, {"rc,self", "3"}} {
		t.Run(test.transports+" "+test.ranks, func(t *testing.T) {
			useUCX(t, test.transports)
			launcher := startProgram(
				t, fabrics.name(), "mpirun", "-np", test.ranks, "--oversubscribe", "--mca", "pml", "ucx", "--mca",
				"osc", "ucx", program,
			)
			launcher.succeed(t)
			if greeting := "hello from " + test.ranks + " ranks"; !strings.Contains(
				launcher.output.String(), greeting,
			) {
				t.Errorf("it did not say %q:\n%s", greeting, launcher.output.String())
			}
		})
	}
}
