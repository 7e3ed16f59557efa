package cases

import (
	"time"

	"rdmarun/host/record"
)

// Case is a case that has ended, or with which its run has ended.
type Case struct {
	File    string
	ID      string
	Attempt int
	Begin   time.Time
	// Order is the number of the case among those that ended, from 1.
	Order      int
	Start      record.Start
	Result     record.Result
	Steps      Tail[record.Step]
	Lines      Tail[Line]
	Measures   []record.Measure
	Thresholds Tail[record.Threshold]
	// Before is what the baseline has measured of the same case.
	Before []record.Measure
}

// Line is a line of output and when it came, since the case began.
type Line struct {
	At time.Duration
	record.Line
}

// Failed tells whether a case counts against its run.
func (c *Case) Failed() bool { return !c.Result.Status.OK() }

// Infrastructure tells whether the case says nothing about what it tests: its surroundings failed, or it
// was ended from outside.
func (c *Case) Infrastructure() bool {
	switch c.Result.Status {
	case record.Errored, record.Interrupted, record.TimedOut, record.Broken:
		return true
	}
	return false
}

// Message is why a case counts against its run, or was not run, in one line; empty for one that is fine.
func (c *Case) Message() string {
	if len(c.Result.Failures) > 0 && c.Result.Status != record.Skipped {
		return c.Result.Failures[0].What
	}
	if c.Result.Status == record.Passed {
		return ""
	}
	if c.Result.Reason != "" {
		return c.Result.Reason
	}
	return string(c.Result.Status)
}
