package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// recoverPanic turns a panic of a command into exit code 70 and a report in a file, so that a user
// has something to send and a script can tell a bug from a failed test.  Deferred, hence the pointer.
func (a *app) recoverPanic(code *exitCode) {
	value := recover()
	if value == nil {
		return
	}
	*code = exitBug
	report := a.crashReport(value, debug.Stack())
	fmt.Fprintf(a.stderr, "rdmarun: internal error: %v\n", value)
	path, err := writeCrashReport(report)
	if err != nil {
		fmt.Fprintf(a.stderr, "rdmarun: the report could not be written (%v), so here it is:\n%s", err, report)
		return
	}
	fmt.Fprintf(a.stderr, "  hint: this is a bug in rdmarun; please report it with the file %s\n", path)
}

func (a *app) crashReport(value any, stack []byte) string {
	return fmt.Sprintf("%spanic: %v\n\n%s", buildReport(strings.Join(a.args, " ")), value, stack)
}

// buildReport is how every report of a crash begins.
func buildReport(arguments string) string {
	build := buildVersion()
	return fmt.Sprintf("rdmarun %s (%s, %s/%s)\narguments: %q\n",
		build.Version, build.Go, build.OS, build.Arch, arguments)
}

func writeCrashReport(report string) (path string, err error) {
	file, err := os.CreateTemp("", "rdmarun-crash-*.txt")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = file.WriteString(report)
	return file.Name(), err
}
