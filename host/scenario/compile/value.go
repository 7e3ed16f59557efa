package compile

import (
	"errors"
	"fmt"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
)

// Value is an argument: known already, or computed when the step runs.
type Value struct {
	// Span is where the value stands in the file.
	Span diag.Span
	// Hex tells that the scenario writes it in hex.
	Hex      bool
	constant any
	// compute is nil for a constant.
	compute func(env expression.Env) (any, error)
}

// EvaluationError is a value that could not be computed when its step ran.
type EvaluationError struct {
	Span diag.Span
	Err  error
}

func (e *EvaluationError) Error() string { return e.Err.Error() }
func (e *EvaluationError) Unwrap() error { return e.Err }

// Hint is what to do about it, empty when nobody knows.
func (e *EvaluationError) Hint() string {
	var known *problem
	if errors.As(e.Err, &known) {
		return known.hint
	}
	return ""
}

func constant(value any, span diag.Span) *Value { return &Value{Span: span, constant: value} }

// Constant returns the value when it is known before the run.
func (v *Value) Constant() (any, bool) { return v.constant, v.compute == nil }

// Get computes the value.  Its errors are EvaluationErrors.
func (v *Value) Get(env expression.Env) (any, error) {
	if v.compute == nil {
		return v.constant, nil
	}
	value, err := v.compute(env)
	if err != nil {
		if located, ok := err.(*EvaluationError); ok {
			return nil, located
		}
		return nil, &EvaluationError{v.Span, err}
	}
	return value, nil
}

// then makes a value of another by a conversion, now if it can.
func (v *Value) then(convert func(any) (any, error)) (*Value, error) {
	if known, ok := v.Constant(); ok {
		converted, err := convert(known)
		if err != nil {
			return nil, err
		}
		return &Value{Span: v.Span, Hex: v.Hex, constant: converted}, nil
	}
	inner := v
	return &Value{Span: v.Span, Hex: v.Hex, compute: func(env expression.Env) (any, error) {
		value, err := inner.Get(env)
		if err != nil {
			return nil, err
		}
		return convert(value)
	}}, nil
}

// combine makes one value of several, now if all are known.  build must not keep the slice.
func combine(span diag.Span, parts []*Value, build func([]any) (any, error)) (*Value, error) {
	known := make([]any, len(parts))
	for i, part := range parts {
		value, ok := part.Constant()
		if !ok {
			return &Value{Span: span, compute: func(env expression.Env) (any, error) {
				values := make([]any, len(parts))
				for i, part := range parts {
					var err error
					if values[i], err = part.Get(env); err != nil {
						return nil, err
					}
				}
				return build(values)
			}}, nil
		}
		known[i] = value
	}
	value, err := build(known)
	if err != nil {
		return nil, err
	}
	return constant(value, span), nil
}

// textOf is how a value looks inside of text.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return fmt.Sprintf("%x", v)
	case time.Duration:
		return quantity.Time(v)
	default:
		return fmt.Sprint(v)
	}
}
