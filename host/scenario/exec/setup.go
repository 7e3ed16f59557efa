package exec

import (
	"fmt"

	"rdmarun/host/record"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// setUp makes the lab and the names of expressions.
func (r *caseRun) setUp() bool {
	var guests testbed.GuestStarter
	if r.program.Guests {
		starter, err := r.config.Guests()
		if err != nil {
			r.environment(fmt.Errorf("the guest runtime: %w", err))
			return false
		}
		guests = starter
	}
	l, err := testbed.New(testbed.Config{
		Provider: r.config.Provider, Roles: r.testCase.Roles, Guests: guests, Output: r.output,
	})
	if err != nil {
		r.environment(err)
		return false
	}
	r.lab = l
	if err := r.environmentNames(); err != nil {
		r.environment(err)
		l.Close()
		return false
	}
	r.writeStart()
	return true
}

// tearDown frees the lab and compares what lives with what lived before.
func (r *caseRun) tearDown(before rdmacore.Live) {
	for _, entry := range r.lab.Traffic() {
		r.result.Traffic = append(r.result.Traffic, record.Traffic(entry))
	}
	failures := r.lab.Close()
	after := r.config.Provider.Live()
	var details []string
	for _, err := range failures {
		details = append(details, err.Error())
	}
	for kind, count := range after {
		if more := count - before[kind]; more > 0 {
			details = append(details, fmt.Sprintf("%d %s still alive", more, kind))
		}
	}
	if len(details) == 0 {
		return
	}
	r.addFailure(record.Failure{
		Kind: "leak", File: r.program.File, What: "not everything could be freed", Details: details, Rerun: r.rerun(),
	})
}
