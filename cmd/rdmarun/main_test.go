package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// runWith runs a command line in this process with one more command, "try", that calls a function of the test.
func runWith(t *testing.T, try func(*cobra.Command) error, signals <-chan os.Signal) (code exitCode, stderr string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // for crash reports
	var out, errOut bytes.Buffer
	a := &app{args: []string{"try"}, stdout: &out, stderr: &errOut, signals: signals}
	a.commands = []func(*app) *cobra.Command{func(*app) *cobra.Command {
		return &cobra.Command{Use: "try", RunE: func(cmd *cobra.Command, _ []string) error { return try(cmd) }}
	}}
	code = a.run()
	return code, errOut.String()
}

func TestErrorsBecomeExitCodes(t *testing.T) {
	plain := errors.New("it broke")
	tests := map[string]struct {
		err  error
		code exitCode
		text string
	}{
		"none":  {nil, exitOK, ""},
		"plain": {plain, exitFailed, "rdmarun: it broke\n"},
		"with a code": {
			fmt.Errorf("run: %w", withExit(exitInvalid, plain)), exitInvalid, "rdmarun: run: it broke\n",
		},
		"outermost code": {
			withExit(exitThreshold, withExit(exitInvalid, plain)), exitThreshold, "rdmarun: it broke\n",
		},
		"with a hint": {
			fmt.Errorf("run: %w", withHint(plain, "fix it")), exitFailed, "rdmarun: run: it broke\n  hint: fix it\n",
		},
		"shown already":  {fmt.Errorf("run: %w", reported(exitFailed)), exitFailed, ""},
		"shown and fine": {reported(exitOK), exitOK, ""},
		"usage":          {usageError("what is %d?", 7), exitUsage, "rdmarun: what is 7?\n"},
		"of the core": {
			fmt.Errorf("run: %w", &rdmacore.Error{Op: "rdma_listen", Errno: syscall.EADDRINUSE}), exitEnvironment,
			"rdmarun: run: rdma_listen: address already in use\n",
		},
		"deadline passed": {
			fmt.Errorf("run: %w", context.DeadlineExceeded), exitTimeout, "rdmarun: run: context deadline exceeded\n",
		},
		"code of a nil":    {withExit(exitFailed, nil), exitOK, ""},
		"hint without err": {withHint(nil, "fix it"), exitOK, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, text := runWith(t, func(*cobra.Command) error { return test.err }, nil)
			if code != test.code || text != test.text {
				t.Errorf("exit code %d, stderr %q; expected %d, %q", code, text, test.code, test.text)
			}
		})
	}
}

func TestSignalsEndTheContext(t *testing.T) {
	tests := map[string]struct {
		signal os.Signal
		code   exitCode
	}{
		"SIGINT":  {os.Interrupt, exitInterrupted},
		"SIGTERM": {syscall.SIGTERM, exitTerminated},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			signals <- test.signal
			code, text := runWith(t, func(cmd *cobra.Command) error {
				<-cmd.Context().Done()
				return fmt.Errorf("wait: %w", context.Cause(cmd.Context()))
			}, signals)
			if code != test.code || !strings.Contains(text, "wait: interrupted (") {
				t.Errorf("exit code %d, stderr %q; expected %d and the signal", code, text, test.code)
			}
		})
	}
}

func TestAPanicLeavesAReport(t *testing.T) {
	code, text := runWith(t, func(*cobra.Command) error { panic("a table is empty") }, nil)
	if code != exitBug || !strings.Contains(text, "internal error: a table is empty") {
		t.Fatalf("exit code %d, stderr %q", code, text)
	}
	_, path, _ := strings.Cut(strings.TrimSpace(text), "with the file ")
	report, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"arguments: \"try\"", "panic: a table is empty", "main_test.go"} {
		if !strings.Contains(string(report), part) {
			t.Errorf("the report lacks %q:\n%s", part, report)
		}
	}
}

func TestExitCodesAreListedOnceEach(t *testing.T) {
	last := exitCode(-1)
	for _, row := range exitCodes {
		if row.code <= last || row.meaning == "" {
			t.Errorf("code %d (%q) after %d: ascending, each with a meaning", row.code, row.meaning, last)
		}
		last = row.code
	}
}

// TestLanguageTopic wants a scenario that is right at its begin, and the words of its lists.
func TestLanguageTopic(t *testing.T) {
	text := languageTopic()
	_, begun, _ := strings.Cut(text, "\n\n")
	scenarioText, _, _ := strings.Cut(begun, "\n\n")
	path := filepath.Join(t.TempDir(), "first.yaml")
	if err := os.WriteFile(path, []byte(scenarioText+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if checked := scenario.Check(
		[]string{path}, scenario.Params{},
	); checked.Errors.Len()+checked.Errors.Warnings() > 0 || len(checked.Scenarios) != 1 {
		t.Errorf("%v\n%s", checked.Errors.Sorted(), scenarioText)
	}
	for _, word := range []string{"thresholds", "for_each", "xfail", "function"} {
		if !strings.Contains(text, "\n  "+word+" ") {
			t.Errorf("there is no %s", word)
		}
	}
}
