package exec

import (
	"encoding/hex"
	"errors"
	"syscall"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/verb"
)

func (r *caseRun) stepRecord(m moment, took instant) *record.Step {
	step := &record.Step{
		Role: m.role, Action: m.action(), Text: m.given(), Outcome: m.result(),
		Line: m.step.Span.Line, Column: m.step.Span.Column,
		At: m.at.wall, Took: took.wall, OK: m.err == nil, Tags: r.tags, XFail: r.known, Used: r.used(),
	}
	if r.history.virtual {
		step.Clock = &record.StepTimes{At: m.at.clock, Took: took.clock}
	}
	if file := m.step.Span.File(); file != r.program.File {
		step.File = file
	}
	return step
}

func (r *caseRun) writeStep(step *record.Step) {
	r.config.Stream.Write(&record.Record{Kind: record.StepEnd, File: r.program.File, Case: r.testCase.ID, Step: step})
}

// returnedFields are a call's results for the record, those without a value left out.
func returnedFields(v *verb.Verb, outcome *verb.Outcome) []record.Field {
	var fields []record.Field
	for i, value := range outcome.Fields {
		if value == nil {
			continue
		}
		result := &v.Results[i]
		fields = append(fields, record.Field{Name: result.Name, Value: recorded(value, result), Varies: result.Varies})
	}
	return fields
}

// recorded shows a value in full: bytes as hexadecimal digits, however many.
func recorded(value any, result *verb.Result) string {
	if data, ok := value.([]byte); ok {
		return hex.EncodeToString(data)
	}
	if result.Hex {
		return compile.ShowHex(value, result.Type)
	}
	return compile.Show(value, result.Type)
}

func returnedErrno(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return verb.ErrnoName(errno)
	}
	return ""
}
