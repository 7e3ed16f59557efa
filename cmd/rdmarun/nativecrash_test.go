package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rdmarun/host/output"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/ownfile"
	"rdmarun/host/program"
	"rdmarun/host/record"
	"rdmarun/rdmacore/process"
)

// crashingLibraries are a librdmacm and a libibverbs that crash as the environment says and are soft else.
func crashingLibraries(t *testing.T) (folder string) {
	t.Helper()
	project, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(project, "bin")
	if _, err := os.Stat(filepath.Join(bin, program.Library)); err != nil {
		t.Skipf("%v (make build)", err)
	}
	folder = t.TempDir()
	for library, source := range map[string]string{
		"librdmacm.so.1": "testdata/crash/librdmacm.c", "libibverbs.so.1": "/dev/null",
	} {
		compiler := exec.Command("cc", "-shared", "-fPIC", "-O0", "-w", "-o", filepath.Join(folder, library), "-x", "c",
			source, "-x", "none",
			"-L"+bin, "-Wl,--no-as-needed", "-l:"+program.Library, "-Wl,-rpath,"+bin)
		if output, err := compiler.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	return folder
}

func TestNativeCrash(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", crashingLibraries(t))
	t.Setenv("TMPDIR", t.TempDir())
	scenario, err := os.ReadFile("../../scenarios/rping.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for how, signal := range map[string]string{
		"segv": "SIGSEGV", "fpe": "SIGFPE", "ill": "SIGILL", "abort": "SIGABRT", "call": "SIGSEGV", "stack": "SIGSEGV",
		"thread": "SIGSEGV", "threads": "SIGSEGV", "free": "SIGABRT", "locked": "SIGSEGV",
	} {
		t.Run(how, func(t *testing.T) {
			t.Setenv("CRASH", how)
			t.Setenv("CRASH_CALL", "1")
			pipe, piped := readPipe(t)
			p := start(t, string(scenario), "run", "-P", "verbs", "lab.yaml", "--repeat", "3",
				"-o", "jsonl=run.jsonl", "-o", "junit=run.xml", "-o", "html=run.html", "-o", "tap=-", "-o", "tap="+pipe)
			if status := p.end(t); status.ExitStatus() != int(exitBug) {
				t.Errorf("it ended with %v, exit status %d: %s", status, status.ExitStatus(), p.stderr.String())
			}
			sentence := "rdmarun: native code crashed: " + signal
			if text := p.stderr.String(); strings.Count(text, "\n"+sentence)+
				strings.Count(text[:len(sentence)], sentence) != 1 ||
				!strings.Contains(text, "1 passed, 1 failed, 1 not run") || strings.Contains(text, "goroutine") {
				t.Errorf("stderr: %s", text)
			}
			reportsOfCrash(t, p, signal)
			if text := <-piped; text != p.stdout.String() {
				t.Errorf("the reader of the pipe has %q, and that of stdout %q", text, p.stdout.String())
			}
			crashReport(t, signal)
		})
	}
}

// readPipe makes a pipe with a name, which is read to its first end.
func readPipe(t *testing.T) (string, <-chan string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error())
		}
		text <- string(data)
	}()
	return path, text
}

// reportsOfCrash checks that each report has all three runs of the case: one that passed, one that crashed, and one
// that was not run.
func reportsOfCrash(t *testing.T, p *runningProcess, signal string) {
	t.Helper()
	if tap := p.stdout.String(); strings.Count(tap, "TAP version") != 1 || strings.Count(tap, "\nok 1 - ") != 1 ||
		strings.Count(tap, "\nnot ok 2 - ") != 1 || !strings.HasSuffix(tap, "\nok 3 # SKIP not run\n") {
		t.Errorf("TAP: %s", tap)
	}
	var junit struct {
		Suites []struct {
			Cases []struct {
				Error *struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	data := p.read(t, "run.xml")
	if err := xml.Unmarshal([]byte(data), &junit); err != nil {
		t.Fatal(err)
	}
	if len(junit.Suites) != 1 || len(junit.Suites[0].Cases) != 2 || junit.Suites[0].Cases[0].Error != nil ||
		junit.Suites[0].Cases[1].Error == nil || !strings.Contains(junit.Suites[0].Cases[1].Error.Message, signal) {
		t.Errorf("JUnit: %s", data)
	}
	if page := p.read(t, "run.html"); !strings.Contains(page, signal) ||
		!strings.HasSuffix(strings.TrimSpace(page), "</html>") {
		t.Errorf("HTML: %d bytes that do not say it", len(page))
	}
	var last []record.Record
	torn, err := jsonl.Read(strings.NewReader(p.read(t, "run.jsonl")), "run.jsonl", func(r *record.Record) error {
		if r.Kind == record.CaseEnd || r.Kind == record.RunEnd {
			last = append(last, *r)
		}
		return nil
	})
	if err != nil || torn || len(last) != 3 || last[0].Result.Status != record.Passed ||
		last[1].Result.Status != record.Broken ||
		last[1].Attempt != 1 || last[2].Totals == nil || !last[2].Totals.Bug || last[2].Totals.NotRun != 1 {
		t.Errorf("records: %v, torn %v, %+v", err, torn, last)
	}
}

// crashReport checks that there is the file that the exit code promises.
func crashReport(t *testing.T, signal string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "rdmarun-crash-*.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("reports of the crash: %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), signal) ||
		!strings.Contains(string(text), `arguments: "run -P verbs lab.yaml `) ||
		!strings.Contains(string(text), "librdmacm.so.1+0x") {
		t.Errorf("%v: %s", err, text)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Error(err)
	}
}

// A user without reports sees how far the run came.
func TestNativeCrashWithoutReports(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", crashingLibraries(t))
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("CRASH", "segv")
	t.Setenv("CRASH_CALL", "0")
	scenario, err := os.ReadFile("../../scenarios/rping.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, string(scenario), "run", "-P", "verbs", "lab.yaml")
	if status := p.end(t); status.ExitStatus() != int(exitBug) {
		t.Errorf("it ended with %v: %s", status, p.stderr.String())
	}
	if text := p.stdout.String(); !strings.Contains(text, "\nBUG   lab.yaml\n") ||
		!strings.Contains(text, "\n1 failed  in ") {
		t.Errorf("stdout: %s", text)
	}
}

// Of cases that run at once the records come when they end; a crash counts those that run all the same.
func TestCrashCountsCasesWhoseRecordsAreHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tap")
	var stdout, stderr bytes.Buffer
	a := &app{env: map[string]string{"XDG_STATE_HOME": t.TempDir()}, stdout: &stdout, stderr: &stderr}
	outputs := &runOutputs{Outputs: &output.Outputs{}, plan: crashPlan{}}
	file, err := ownfile.Nameless(os.O_APPEND)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kept := keepForCrash(file, outputs.madeAnew())
	stream := record.NewStream(kept)
	start := func(id string) *record.Record {
		return &record.Record{
			Version: record.Version, Kind: record.CaseStart, File: "lab.yaml", Case: id, Start: &record.Start{Name: id},
		}
	}
	stream.Write(&record.Record{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 4}})
	stream.Announce(start("lab.yaml::first"))
	stream.Announce(start("lab.yaml::second"))
	stream.Announce(start("lab.yaml::third"))
	stream.Forward(start("lab.yaml::second"),
		&record.Record{Version: record.Version, Kind: record.CaseEnd, File: "lab.yaml", Case: "lab.yaml::second",
			Result: &record.Result{Name: "second", Status: record.Passed}})

	// It is closed with the reports.
	descriptor, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	plan := &crashPlan{Descriptor: descriptor, Targets: []output.Target{{Format: "tap", Path: path}}}
	if err := a.closeReports(plan, &crashEnd{status: record.Broken, reason: "it crashed"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"ok 1 - lab.yaml::second", "not ok 2 - lab.yaml::first", "not ok 3 - lab.yaml::third", "ok 4 # SKIP not run",
	} {
		if !strings.Contains("\n"+string(text), "\n"+line+"\n") {
			t.Errorf("no line %q: %s", line, text)
		}
	}
	if shown := stdout.String(); !strings.HasPrefix(
		strings.TrimSpace(shown[strings.LastIndex(shown, "\n\n"):]), "1 passed, 2 failed, 1 not run",
	) {
		t.Errorf("stdout: %s", shown)
	}
}

// A process that could have no more threads has no bug, and no report of one.
func TestNoThreadsIsNoBug(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, stderr bytes.Buffer
	a := &app{args: []string{
		crashedCommand, process.Environment, "rdmarun: no more threads can be made: why\n", "", "run lab.yaml",
	},
		stdout: &stdout, stderr: &stderr, commands: commandConstructors}
	if code := a.run(); code != exitEnvironment || stderr.Len() != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	a.args[1] = "bug"
	if code := a.run(); code != exitBug || !strings.Contains(stderr.String(), "please report it with the file") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
