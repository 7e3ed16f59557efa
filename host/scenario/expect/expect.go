// Package expect compares the result of a step with what the file expects of it, and says what differs.
package expect

import (
	"errors"
	"regexp"
	"slices"
	"syscall"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// checkNone wants that nothing came.
func checkNone(outcome *verb.Outcome, err error) error {
	var failure *testbed.Failure
	switch {
	case errors.As(err, &failure) && failure.Absent:
		outcome.Summary = func() string { return "nothing came, as it should be" }
		return nil
	case err != nil:
		return err
	}
	got := "something"
	if outcome.Summary != nil {
		got = outcome.Summary()
	}
	return &testbed.Failure{What: "something came", Expected: "nothing", Got: got}
}

// checkAny takes whatever came, a call that failed included; that nothing came in time is no result.
func checkAny(outcome *verb.Outcome, err error) error {
	var errno syscall.Errno
	var failure *testbed.Failure
	if err == nil || errors.As(err, &failure) || !errors.As(err, &errno) {
		return err
	}
	outcome.Summary = func() string { return "failed with " + verb.ErrnoName(errno) + ", where anything may come" }
	return nil
}

// Check compares the outcome of a call, and its error, with what the step expects.
func Check(env expression.Env, action *compile.Call, outcome *verb.Outcome, err error) error {
	switch {
	case action.None:
		return checkNone(outcome, err)
	case action.Any:
		return checkAny(outcome, err)
	}
	wanted := slices.IndexFunc(action.Expect, func(e compile.Expectation) bool { return e.Field == compile.Errno })
	if wanted >= 0 {
		err = checkErrno(env, &action.Expect[wanted], err)
	} else {
		err = succeeded(err)
	}
	if err != nil {
		return err
	}
	return checkFields(env, action.Expect, action.Verb, outcome)
}

// causes are what an errno usually means; EINVAL means anything, so that an error which says what it is of says enough.
func causes(err error, errno string) string {
	if known := (*rdmacore.Error)(nil); errors.As(err, &known) && known.Errno == syscall.EINVAL && known.Why != "" {
		return ""
	}
	return explain.Errno(errno)
}

// succeeded wants a call to have succeeded.
func succeeded(err error) error {
	var errno syscall.Errno
	var failure *testbed.Failure
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.As(err, &errno):
		name := verb.ErrnoName(errno)
		return &testbed.Failure{
			What: "it failed", Expected: "success", Got: name + " (" + err.Error() + ")", Hint: causes(err, name),
		}
	}
	return err
}

// checkFields compares each field that is expected; errno is none.
func checkFields(env expression.Env, expect []compile.Expectation, v *verb.Verb, outcome *verb.Outcome) error {
	for i := range expect {
		e := &expect[i]
		if e.Field == compile.Errno || e.Default && outcome.NoDefaults {
			continue
		}
		if err := checkField(env, e, field(e, outcome), outcome, v); err != nil {
			return err
		}
	}
	return nil
}

func field(e *compile.Expectation, outcome *verb.Outcome) any {
	switch {
	case outcome.Record != nil:
		return outcome.Record[e.Field]
	case e.Index >= 0 && e.Index < len(outcome.Fields):
		return outcome.Fields[e.Index]
	}
	return nil
}

func checkField(env expression.Env, e *compile.Expectation, got any, outcome *verb.Outcome, v *verb.Verb) error {
	ok, want, err := e.Check(env, got)
	if err != nil || ok {
		return err
	}
	shown := e.Show(got)
	failure := &testbed.Failure{
		What: "wrong " + e.Field, Expected: e.Field + " " + want, Got: e.Field + " " + shown, Span: e.Span,
	}
	if outcome.Summary != nil {
		if summary := outcome.Summary(); shows(summary, e.Field, shown) {
			failure.Got = summary
		} else {
			failure.Got += "  (" + summary + ")"
		}
	}
	failure.Hint = outcome.Hint
	if e.Field == "status" {
		failure.Hint = explainStatus(v, got, outcome)
	}
	return failure
}

// isWord is a value that is one of RDMA's words, such as a status or an opcode, and so says which field it is of.
var isWord = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// shows reports whether a summary shows the value of a field without a doubt: behind the field's name, or as a word
// that needs none.
func shows(summary, field, value string) bool {
	name := "(?:" + regexp.QuoteMeta(field) + " )"
	if isWord.MatchString(value) {
		name += "?"
	}
	return regexp.MustCompile(`(?:^|[\s(])` + name + regexp.QuoteMeta(value) + `(?:[\s,;)]|$)`).MatchString(summary)
}

// explainStatus says what a status means that was not expected: that of a completion, or of an event.
func explainStatus(v *verb.Verb, got any, outcome *verb.Outcome) string {
	switch status := got.(type) {
	case string:
		if status != "SUCCESS" {
			return status + ": " + explain.Completion(status)
		}
	case int:
		if len(outcome.Fields) > 0 {
			event, _ := outcome.Fields[v.Result("type")].(string)
			return explain.Event(event, status)
		}
	}
	return ""
}

// checkErrno compares the errno of a call, "0" for success, with the expectation.
func checkErrno(env expression.Env, e *compile.Expectation, err error) error {
	got := "0"
	var errno syscall.Errno
	if errors.As(err, &errno) {
		got = verb.ErrnoName(errno)
	} else if err != nil {
		return err
	}
	ok, want, evaluation := e.Check(env, got)
	if err != nil && !ok && evaluation == nil {
		ok, _, evaluation = e.Check(env, verb.ErrnoAlias(errno))
	}
	if evaluation != nil || ok {
		return evaluation
	}
	failure := &testbed.Failure{What: "wrong errno", Expected: want, Got: "success", Span: e.Span}
	if err != nil {
		failure.Got = got + " (" + err.Error() + ")"
		failure.Hint = causes(err, got)
	}
	return failure
}
