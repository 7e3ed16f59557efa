package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// lastRun is how the cases of a folder ended when they were last run, for --last-failed.  Cases that a run does
// not select keep what they had.
type lastRun struct {
	path string
	// Cases has the status of each case by its id with the absolute path of its file. So another way to write the
	// path is the same case.
	Cases map[string]record.Status `json:"cases"`
}

// notRun is the status of a case that was selected and did not come to its end.
const notRun record.Status = "not_run"

// lastRunPath is a file of its own for each working directory, below $XDG_STATE_HOME.
func lastRunPath(a *app) (string, error) {
	state := a.env["XDG_STATE_HOME"]
	if !filepath.IsAbs(state) { // the XDG specification has relative paths ignored
		if a.env["HOME"] == "" {
			return "", errors.New("neither XDG_STATE_HOME nor HOME is set")
		}
		state = filepath.Join(a.env["HOME"], ".local", "state")
	}
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join(state, "rdmarun", "last-run", hex.EncodeToString(sum[:8])+".json"), nil
}

// readLastRun reads what is known: nothing, where no run was noted yet.
func readLastRun(a *app) (*lastRun, error) {
	last := &lastRun{Cases: make(map[string]record.Status)}
	path, err := lastRunPath(a)
	if err != nil {
		return nil, fmt.Errorf("--last-failed: %w", err)
	}
	last.path = path
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--last-failed: %w", err)
	}
	if err := json.Unmarshal(text, last); err != nil {
		return nil, withHint(
			fmt.Errorf("--last-failed: %s: %w", path, err), "delete that file, and run once without --last-failed",
		)
	}
	return last, nil
}

// beginLastRun notes that cases are about to run: until they end, they have not.  A folder that cannot be
// written costs --last-failed and nothing else.
func beginLastRun(a *app, cases []scenario.Selected) *lastRun {
	last, err := readLastRun(a)
	if err != nil { // of a file that is no such note: it is written anew
		last = &lastRun{Cases: make(map[string]record.Status)}
		if last.path, err = lastRunPath(a); err != nil {
			return nil
		}
	}
	for _, each := range cases {
		last.Cases[absoluteID(each.Case.ID)] = notRun
	}
	if last.save() != nil {
		return nil
	}
	return last
}

// absoluteID is an id with the absolute path of its file.
func absoluteID(id string) string {
	file, name, named := strings.Cut(id, "::")
	if absolute, err := filepath.Abs(file); err == nil {
		file = absolute
	}
	if named {
		return file + "::" + name
	}
	return file
}

// failed reports whether a case is to be run again.
func (l *lastRun) failed(id string) bool {
	status, known := l.Cases[absoluteID(id)]
	return known && !status.OK()
}

// files are the paths of the files that are still there and have a case to be run again.
func (l *lastRun) files() []string {
	var paths []string
	folder, err := os.Getwd()
	if err != nil {
		return nil
	}
	for id, status := range l.Cases {
		file, _, _ := strings.Cut(id, "::")
		if _, err := os.Stat(file); err != nil || status.OK() {
			continue
		}
		if relative, err := filepath.Rel(folder, file); err == nil {
			file = relative
		}
		paths = append(paths, file)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Wants implements record.Consumer.
func (l *lastRun) Wants(kind record.Kind) bool {
	return kind == record.CaseEnd || kind == record.RunEnd
}

// Record implements record.Consumer.
func (l *lastRun) Record(r *record.Record) error {
	if r.Kind == record.RunEnd {
		return l.save()
	}
	id := absoluteID(r.Case)
	// A failure stays when a case ran several times.
	if r.Attempt == 0 || r.Result.Flaky() || l.Cases[id].OK() || l.Cases[id] == notRun {
		l.Cases[id] = r.Result.Status
	}
	return nil
}

func (l *lastRun) save() error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	// By rename, so that two runs at once leave one whole file.
	temporary, err := os.CreateTemp(filepath.Dir(l.path), ".last-run-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), l.path)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}
