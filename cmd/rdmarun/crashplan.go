package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"rdmarun/host/output"
	"rdmarun/host/output/jsonl"
	show "rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore/process"
)

// crashPlan is what the process that follows a crash of native code needs to close what the run has begun.
type crashPlan struct {
	// Descriptor is that of the records until the crash, a file without a name.
	Descriptor int             `json:"descriptor"`
	Targets    []output.Target `json:"targets,omitempty"`
	// Streams are the descriptors of those targets that are no files, such as pipes, by their path: who reads there
	// gets the rest, and no end before.
	Streams map[string]int `json:"streams,omitempty"`
	// ToStderr tells where the text for people goes.
	ToStderr bool              `json:"to_stderr,omitempty"`
	Human    show.HumanOptions `json:"human"`
	GitHub   bool              `json:"github,omitempty"`
	Log      *logPlan          `json:"log,omitempty"`
	// Folder is that of --out-dir, which "latest" is to lead to.
	Folder string `json:"folder,omitempty"`
}

type logPlan struct {
	File   string `json:"file"`
	Format string `json:"format"`
}

// catchNativeCrashes has the process say so and close its reports when native code crashes, unless it is the one that
// follows a crash: nobody would end a circle.
func (a *app) catchNativeCrashes() {
	if len(a.args) > 0 && a.args[0] == crashedCommand {
		return
	}
	if err := process.CatchCrashes(crashedCommand); err != nil {
		a.warn(err.Error())
		return
	}
	a.planForCrash, a.noPlanForCrash = process.Plan, process.NoPlan
}

// recordsForCrash keeps the records of a run where the process that follows a crash finds them, as far as the
// reports that have to be made anew want them; records that were asked for are only continued.
type recordsForCrash struct {
	file   *os.File
	writer *jsonl.Writer
	others []record.Consumer
	kept   int64
	broken bool
}

// mostForCrash bounds what is kept for the reports of a run of any length; its cases are counted all the same.
const mostForCrash = 256 << 20

// prepareForCrash begins to keep the records of a run.  It comes after all other consumers, so that these have what
// it has.  The caller calls end when the reports are closed.
func (a *app) prepareForCrash(outputs *runOutputs, config *scenario.RunConfig) (end func(), err error) {
	if a.planForCrash == nil {
		return func() {}, nil
	}
	file, err := namelessFile()
	if err != nil {
		return nil, withExit(exitEnvironment, fmt.Errorf("keep records in case native code crashes: %w", err))
	}
	outputs.plan.Descriptor = int(file.Fd())
	files := append([]*os.File{file}, outputs.plan.openStreams()...)
	closeAll := func() {
		for _, each := range files {
			_ = each.Close()
		}
	}
	text, err := json.Marshal(outputs.plan)
	if err != nil {
		closeAll()
		return nil, err
	}
	config.Consumers = append(config.Consumers, keepForCrash(file, outputs.madeAnew()))
	a.planForCrash(string(text), files...)
	return func() {
		a.noPlanForCrash()
		closeAll()
	}, nil
}

// openStreams opens the targets that are no files once more.  Somebody reads there already, or had no interest: nobody
// is waited for.
func (p *crashPlan) openStreams() []*os.File {
	var files []*os.File
	p.Streams = make(map[string]int)
	for _, target := range p.Targets {
		info, err := os.Stat(target.Path)
		if target.Path == "-" || err != nil || info.Mode().IsRegular() || info.IsDir() || len(files)+1 == process.MostFiles {
			continue
		}
		descriptor, err := unix.Open(target.Path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if err := unix.SetNonblock(descriptor, false); err != nil {
			_ = unix.Close(descriptor)
			continue
		}
		p.Streams[target.Path] = descriptor
		files = append(files, os.NewFile(uintptr(descriptor), target.Path))
	}
	return files
}

func keepForCrash(file *os.File, others []record.Consumer) *recordsForCrash {
	kept := &recordsForCrash{file: file, others: others}
	kept.writer = jsonl.To(kept, "for a crash")
	return kept
}

// namelessFile goes with the process that has it, however that ends.
func namelessFile() (*os.File, error) {
	descriptor, err := unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
	if err != nil {
		descriptor, err = unix.MemfdCreate("rdmarun-records", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(descriptor), "records"), nil
}

// Write implements io.Writer, for the writer of records.
func (k *recordsForCrash) Write(line []byte) (int, error) {
	n, err := k.file.Write(line)
	k.kept += int64(n)
	return n, err
}

// Wants implements record.Consumer.
func (k *recordsForCrash) Wants(kind record.Kind) bool {
	switch kind {
	case record.RunStart, record.CaseStart, record.CaseRetry, record.CaseEnd, record.Checked, record.RunEnd:
		return true
	}
	return k.kept < mostForCrash && slices.ContainsFunc(k.others, func(c record.Consumer) bool { return c.Wants(kind) })
}

// Record implements record.Consumer.  A full disk ends what is kept, and nothing else.
func (k *recordsForCrash) Record(r *record.Record) error {
	if !k.broken {
		k.broken = k.writer.Record(r) != nil
	}
	return nil
}

// Announce implements record.Announced.
func (k *recordsForCrash) Announce(start *record.Record) { _ = k.Record(start) }
