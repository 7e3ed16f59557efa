package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

// limited is rdmarun, started by a shell that does something first; uid 0 is this process's own.
func limited(t *testing.T, folder, first string, uid uint32, args ...string) (output string, code int) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if uid != 0 {
		binary = copied(t, folder, binary)
	}
	shell := exec.Command("bash", append([]string{"-c", first + ` exec -a rdmarun "$0" "$@"`, binary}, args...)...)
	shell.Dir = folder
	shell.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(folder, "state"), "GITHUB_ACTIONS=")
	if uid != 0 {
		shell.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	text, _ := shell.CombinedOutput()
	return string(text), shell.ProcessState.ExitCode()
}

// copied is the binary where any user may run it.
func copied(t *testing.T, folder, binary string) string {
	t.Helper()
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(folder, "rdmarun")
	for _, each := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(each, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(place, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return place
}

func TestLimitsTooLowForARun(t *testing.T) {
	// Root may have any number of processes.
	var nobody uint32
	if os.Getuid() == 0 {
		nobody = 65533
	}
	for name, limit := range map[string]struct {
		first, want string
		uid         uint32
	}{
		"address space":          {"ulimit -v 1048576;", "too little address space: ", 0},
		"none to speak of":       {"ulimit -v 400000;", "too little address space: ", 0},
		"descriptors":            {"ulimit -n 16;", "too few file descriptors: ", 0},
		"hardly any descriptors": {"ulimit -n 5;", "too few file descriptors: ", 0},
		"descriptors, taken": {
			"ulimit -n 40; for i in {3..29}; do eval \"exec $i</dev/null\"; done;", "too few file descriptors: ", 0,
		},
		"processes":               {"ulimit -u 3;", "no more threads can be made: ", nobody},
		"descriptors, and no one": {"ulimit -n 16; exec 2>&-;", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := limited(t, t.TempDir(), limit.first, limit.uid, "version")
			if code != int(exitEnvironment) {
				t.Errorf("exit code %d", code)
			}
			if limit.want == "" && output == "" {
				return
			}
			if !strings.HasPrefix(output, "rdmarun: "+limit.want) ||
				!strings.Contains(output, "\n  hint: raise it: ulimit -") || strings.Count(output, "\n") != 2 {
				t.Errorf("output: %s", output)
			}
		})
	}
}

// The soft limit is no limit: it is raised, as Go's runtime does.
func TestSoftLimitOfDescriptorsIsRaised(t *testing.T) {
	if output, code := limited(t, t.TempDir(), "ulimit -S -n 8;", 0, "version"); code != 0 {
		t.Errorf("exit code %d: %s", code, output)
	}
}

// What is opened without stdin, stdout and stderr is not taken for one of them.
func TestClosedStandardDescriptors(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(
		filepath.Join(folder, "lab.yaml"), []byte("rdmarun: v1\nroles: {server: {}}\nsteps:\n  - {log: one line}\n"),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	_, code := limited(t, folder, "exec <&- >&- 2>&-;", 0, "run", "lab.yaml", "-o", "jsonl=run.jsonl")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	file, err := os.Open(filepath.Join(folder, "run.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var last record.Kind
	torn, err := jsonl.Read(file, "run.jsonl", func(r *record.Record) error {
		last = r.Kind
		return nil
	})
	if err != nil || torn || last != record.RunEnd {
		t.Errorf("%v, torn %v, last %s", err, torn, last)
	}
}

// What a step could not be asked for says nothing of what it was to find out: it has not failed, expectedly or not.
func TestOutOfDescriptorsInAStep(t *testing.T) {
	for name, xfail := range map[string]string{
		"it should pass": "", "it is known to fail": "    xfail: {reason: known}\n",
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			scenario := "rdmarun: v1\nroles: {server: {}, client: {}}\ncases:\n  - name: many\n" + xfail +
				"    steps:\n" +
				"      - {role: server, create_ep: {passive: true, port: 7471}, as: listener}\n"
			for number := range 30 {
				scenario += fmt.Sprintf(
					"      - {role: client, create_ep: {to: server, port: 7471}, as: ep%d}\n", number,
				)
			}
			if err := os.WriteFile(filepath.Join(folder, "lab.yaml"), []byte(scenario), 0o600); err != nil {
				t.Fatal(err)
			}
			output, code := limited(t, folder, "ulimit -n 28;", 0, "run", "lab.yaml", "-o", "junit=run.xml")
			if code != int(exitEnvironment) || !strings.Contains(output, "too many open files") ||
				!strings.Contains(output, "= hint      raise the limit") ||
				!strings.Contains(output, "\n1 could not run") {
				t.Errorf("exit code %d: %s", code, output)
			}
		})
	}
}
