package process

import (
	"errors"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// catching has the test binary catch crashes and then do what the variable says.
const catching = "RDMARUN_TEST_CATCHING"

func TestMain(m *testing.M) {
	if what := os.Getenv(catching); what != "" {
		os.Exit(catch(what))
	}
	os.Exit(m.Run())
}

type structure struct{ field *int }

func catch(what string) int {
	if err := CatchCrashes("crashed"); err != nil {
		println(err.Error())
		return 1
	}
	switch what {
	case "recover":
		defer func() { println("recovered:", recover().(runtime.Error).Error()) }()
	case "wait":
		println("ready")
		select {}
	}
	var nothing *structure
	return *nothing.field
}

// What Go's own code does is a panic as ever.
func TestFaultOfGoIsAPanic(t *testing.T) {
	for what, want := range map[string]string{
		"recover": "recovered: runtime error: invalid memory address", "panic": "\ngoroutine 1 ",
	} {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), catching+"="+what)
		output, err := command.CombinedOutput()
		exit := (*exec.ExitError)(nil)
		if errors.As(err, &exit) != (what == "panic") || exit != nil && exit.ExitCode() != 2 {
			t.Errorf("%s: %v", what, err)
		}
		if text := string(output); !strings.Contains(text, want) || strings.Contains(text, "native") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// A signal from another process gives Go's traceback.
func TestSignalFromOutsideIsGos(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), catching+"=wait")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	buffer := make([]byte, 4096)
	for sent := false; ; {
		n, err := stderr.Read(buffer)
		text.Write(buffer[:n])
		if err != nil {
			break
		}
		if !sent && strings.Contains(text.String(), "ready") {
			sent = true
			if err := command.Process.Signal(syscall.SIGABRT); err != nil {
				t.Error(err)
			}
		}
	}
	if err := command.Wait(); err == nil || !strings.Contains(text.String(), "SIGABRT: abort") ||
		strings.Contains(text.String(), "native") {
		t.Errorf("%v: %s", err, text.String())
	}
}

func TestGoText(t *testing.T) {
	begin, end := goText()
	for name, function := range map[string]any{
		"this": TestGoText, "the runtime": runtime.GC, "a library": strings.Contains,
	} {
		if at := reflect.ValueOf(function).Pointer(); at < begin || at >= end {
			t.Errorf("%s is at %#x, not from %#x to %#x", name, at, begin, end)
		}
	}
	if runtime.FuncForPC(begin-1) != nil || runtime.FuncForPC(end) != nil || runtime.FuncForPC(end-1) == nil {
		t.Errorf("from %#x to %#x is not all", begin, end)
	}
}
