package verb

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// act defines a verb without results by its name, manual page and documentation, and the function that runs it.
func act[A any](name, manual, doc string, run func(ctx context.Context, call *Call, args *A) error) Verb {
	return define(Verb{
		Name: name, Manual: manual, Doc: doc,
	}, func(ctx context.Context, call *Call, args *A) (none, error) {
		return none{}, run(ctx, call, args)
	})
}

// ask defines a verb with results that `as` can name.
func ask[A, R any](name, manual, doc string, run func(ctx context.Context, call *Call, args *A) (R, error)) Verb {
	return define(Verb{Name: name, Manual: manual, Doc: doc, Named: true}, run)
}

// making is the verb as one that makes an object of a type, which `as` names.
func (v Verb) making(object Type) Verb {
	v.Named, v.Makes = true, ObjectOf(object)
	return v
}

// The verb with another field: Scalar, Capability, Roleless, OfProgram, OrProgram, Measures, Sends and Outstanding.
func (v Verb) scalar(argument string) Verb    { v.Scalar = argument; return v }
func (v Verb) needing(capability string) Verb { v.Capability = capability; return v }
func (v Verb) roleless() Verb                 { v.Roleless = true; return v }
func (v Verb) ofProgram() Verb                { v.OfProgram = true; return v }
func (v Verb) orProgram() Verb                { v.OrProgram = true; return v }
func (v Verb) measuring() Verb                { v.Measures = true; return v.split() }
func (v Verb) split() Verb                    { v.Split = true; return v }
func (v Verb) sending() Verb                  { v.Sends = true; return v }
func (v Verb) outstanding() Verb              { v.Outstanding = true; return v.sending() }

// carrying is the verb as one with private data in its message.
func (v Verb) carrying(connection, datagram int) Verb {
	v.PrivateData = &PrivateDataLimits{connection, datagram}
	return v
}

// define derives the arguments and results of a verb from Go types, with struct tags for what these cannot say:
//
//	type arguments struct {
//		EP    *testbed.Endpoint `arg:"ep,only" doc:"the endpoint; without it the role's only one"`
//		Depth int               `arg:"depth,required" max:"0xffff" doc:"requests in flight"`
//		WRID  uint64            `arg:"wr_id" default:"0" doc:"comes back in the completion"`
//	}
//
//	type result struct {
//		Status rdmacore.WCStatus `result:"status" default:"SUCCESS" doc:"how it ended"`
//		Length Optional[uint32]  `result:"byte_len" doc:"bytes received"`
//	}
//
// The Go type of a field decides its type in scenarios (kindOf) and its bounds, unless min and max set others.  An
// argument may have these options after its name:
//
//	required  a step must give it
//	only      if the step names no endpoint, it is the only one of the role
//	inline    its keys are keys of the verb (Argument.Inline)
//	message   Argument.Message
//
// A result may have varies, hex and failed (Result.OfFailure).  The fields of a struct without a tag, embedded or not,
// count as fields of the struct around it.  A word in 'quotes' becomes one in backquotes, which a tag cannot contain.
//
// The types may have methods:
//
//   - check, needs and results of arguments are Verb.Check, Verb.Needs and Verb.Names.  Before the run only what is
//     known is filled in, see Optional.
//   - find of arguments looks up what the verb needs of the objects that they name, before it runs.
//   - summary of a result is Outcome.Summary.  It sees the result alone, because the next step may have reused the Call
//     by the time of the call.
//
// The tags are read when the verb is first looked up, since a scenario uses few verbs.
func define[A, R any](row Verb, run func(ctx context.Context, call *Call, args *A) (R, error)) Verb {
	row.describe = func(v *Verb) { describe(v, run) }
	return row
}

func describe[A, R any](v *Verb, run func(ctx context.Context, call *Call, args *A) (R, error)) {
	type (
		checker interface{ check() *Refusal }
		needer  interface{ needs() string }
		namer   interface{ results() []Result }
		finder  interface{ find(call *Call) error }
		summary interface{ summary() string }
	)
	arguments, results := argumentsOf(reflect.TypeFor[A]()), resultsOf(reflect.TypeFor[R]())
	v.Arguments, v.Results = arguments.rows, results.rows
	v.Waits = v.Argument("within") >= 0
	_, finds := any(new(A)).(finder)
	for i := range reflect.TypeFor[A]().NumField() {
		if part := reflect.TypeFor[A]().Field(i); part.Anonymous && !finds &&
			reflect.PointerTo(part.Type).Implements(reflect.TypeFor[finder]()) {
			panic(v.Name + ": two parts of its arguments have a method find; they need one that calls both")
		}
	}
	_, sums := any(new(R)).(summary)
	reportsFailure := slices.ContainsFunc(results.rows, func(r Result) bool { return r.OfFailure })
	v.Run = func(ctx context.Context, call *Call) error {
		args := new(A)
		if err := arguments.fill(call, reflect.ValueOf(args).Elem(), call.Arguments, nil); err != nil {
			return err
		}
		if finds {
			if err := any(args).(finder).find(call); err != nil {
				return err
			}
		}
		result, err := run(ctx, call, args)
		if len(results.rows) > 0 {
			call.Outcome.Fields = results.values(reflect.ValueOf(&result).Elem(), err != nil)
		}
		call.Outcome.Summary = nil // run has the call, and must not leave a function that reads it
		if sums && (err == nil || reportsFailure) {
			call.Outcome.Summary = any(&result).(summary).summary
		}
		return err
	}
	known := func(call *Call) any {
		args := new(A)
		// Without a run there are no objects to be found, and so nothing fails.
		_ = arguments.fill(nil, reflect.ValueOf(args).Elem(), call.Arguments, call.Deferred)
		return args
	}
	if _, checks := any(new(A)).(checker); checks {
		v.Check = func(call *Call) *Refusal { return known(call).(checker).check() }
	}
	if _, names := any(new(A)).(namer); names {
		v.Names = func(call *Call) []Result { return known(call).(namer).results() }
	}
	if _, needs := any(new(A)).(needer); needs {
		v.Needs = func(call *Call) string { return known(call).(needer).needs() }
	}
}

// none is the type of no arguments, and of no result.
type none = struct{}

// optional is an argument that makes a difference if a step leaves it out, or a result that may be missing.
type optional[T any] struct {
	Value T
	Given bool
	// Deferred means, before the run, that the value of an argument is known only in the run.
	Deferred bool
}

// some is an Optional with a value.
func some[T any](value T) optional[T] { return optional[T]{Value: value, Given: true} }

// when is an Optional with a value, or not.
func when[T any](given bool, value T) optional[T] { return optional[T]{Value: value, Given: given} }

// known reports whether there is a value already.
func (o optional[T]) known() bool { return o.Given && !o.Deferred }

// or is the value, or another one if there is none.
func (o optional[T]) or(other T) T {
	if o.known() {
		return o.Value
	}
	return other
}

func (optional[T]) optional() {}

func isOptional(t reflect.Type) bool { return t.Implements(reflect.TypeFor[interface{ optional() }]()) }

// The fields of an Optional, reflect.Value.Field.
const (
	optionalValue = iota
	optionalGiven
	optionalLater
)

// slot is a field of a struct of arguments or results.
type slot struct {
	index    []int // reflect.Value.FieldByIndex
	optional bool
	only     bool
	kind
}

func slotOf(field reflect.StructField) slot {
	s, t := slot{index: field.Index}, field.Type
	if isOptional(t) {
		s.optional, t = true, t.Field(optionalValue).Type
	}
	s.kind = kindOf(t, field.Tag.Get("words"))
	return s
}

// tagged are the fields of a struct with a tag, and those of structs inside it that have none themselves.
func tagged(t reflect.Type, tag string) []reflect.StructField {
	var fields []reflect.StructField
	for i := range t.NumField() {
		field := t.Field(i)
		if _, has := field.Tag.Lookup(tag); has {
			fields = append(fields, field)
		} else if field.Type.Kind() == reflect.Struct {
			for _, inner := range tagged(field.Type, tag) {
				inner.Index = append([]int{i}, inner.Index...)
				fields = append(fields, inner)
			}
		}
	}
	return fields
}

// assign copies the fields that have the same names in two structs, if Go converts one to the other. It copies
// Optional ones only if they are set.
func assign(to, from any) {
	target, source := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for _, field := range reflect.VisibleFields(source.Type()) {
		into, value := target.FieldByName(field.Name), source.FieldByIndex(field.Index)
		if !into.IsValid() || field.Anonymous {
			continue
		}
		if isOptional(field.Type) {
			if !value.Field(optionalGiven).Bool() {
				continue
			}
			value = value.Field(optionalValue)
		}
		if value.CanConvert(into.Type()) {
			into.Set(value.Convert(into.Type()))
		}
	}
}

// nameOf reads a tag: a name, and the options that are set.
func nameOf(field reflect.StructField, tag string, options map[string]*bool) string {
	words := strings.Split(field.Tag.Get(tag), ",")
	for _, word := range words[1:] {
		option := options[word]
		if option == nil {
			panic(fmt.Sprintf("%s: %s has no option %q", field.Name, tag, word))
		}
		*option = true
	}
	return words[0]
}

// argumentFields are the fields of a struct of arguments.
type argumentFields struct {
	rows  []Argument
	slots []slot
}

// argumentsOf reads the tags of a struct of arguments.  A wrong tag is a bug, which the tests of the table find.
func argumentsOf(t reflect.Type) *argumentFields {
	a := &argumentFields{}
	for _, field := range tagged(t, "arg") {
		k := slotOf(field)
		row := Argument{
			Type: k.argument, Words: k.words, Fields: k.fields(), Group: field.Tag.Get("group"),
			Doc: documentation(field),
			Min: bound(field, "min", k.min), Max: bound(field, "max", k.max), Default: standing(field, k.argument),
		}
		row.Name = nameOf(field, "arg", map[string]*bool{
			"required": &row.Required, "inline": &row.Inline, "message": &row.Message, "only": &k.only,
		})
		a.rows, a.slots = append(a.rows, row), append(a.slots, k)
	}
	return a
}

// fill sets the fields of a struct.  Before the run call is nil, and later marks the values that are not known yet.
func (a *argumentFields) fill(call *Call, args reflect.Value, values []any, later []bool) error {
	for i := range a.slots {
		slot := &a.slots[i]
		unknown := i < len(later) && later[i]
		given := unknown || i < len(values) && values[i] != nil
		if !given && !slot.only {
			continue
		}
		field := args.FieldByIndex(slot.index)
		if slot.optional {
			field.Field(optionalGiven).SetBool(given)
			field.Field(optionalLater).SetBool(unknown || call == nil && slot.find != nil)
			field = field.Field(optionalValue)
		}
		switch {
		case unknown || call == nil && slot.find != nil:
		case slot.find != nil && given:
			object, err := slot.find(call, values[i])
			if err != nil {
				return err
			}
			field.Set(reflect.ValueOf(object))
		case slot.find != nil: // only
			endpoint, err := call.Role.OnlyEndpoint()
			if err != nil {
				return err
			}
			field.Set(reflect.ValueOf(endpoint))
		default:
			if err := slot.set(call, field, values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillNamed sets the fields of a struct by the names of arguments.  One that is not given gets its default, or stays as
// it is.
func (a *argumentFields) fillNamed(call *Call, args reflect.Value, given map[string]any, defaults bool) error {
	values := make([]any, len(a.rows))
	for i := range a.rows {
		value, has := given[a.rows[i].Name]
		if !has && defaults {
			value = a.rows[i].Default
		}
		values[i] = value
	}
	return a.fill(call, args, values, nil)
}

// resultFields are the fields of the struct of a result.
type resultFields struct {
	rows  []Result
	slots []slot
}

func resultsOf(t reflect.Type) *resultFields {
	r := &resultFields{}
	for _, field := range tagged(t, "result") {
		k := slotOf(field)
		row := Result{Type: k.result, Default: standing(field, k.result), Doc: documentation(field)}
		row.Name = nameOf(field, "result", map[string]*bool{
			"varies": &row.Varies, "hex": &row.Hex, "failed": &row.OfFailure,
		})
		if row.Type == Word {
			row.Words = k.words
		}
		r.rows, r.slots = append(r.rows, row), append(r.slots, k)
	}
	return r
}

// values are the fields of a result as scenarios see them; nil for a missing one.  Of a failed call all are missing but
// those of failures.
func (r *resultFields) values(result reflect.Value, failed bool) []any {
	values := make([]any, len(r.rows))
	for i := range r.slots {
		if failed && !r.rows[i].OfFailure {
			continue
		}
		field := result.FieldByIndex(r.slots[i].index)
		if r.slots[i].optional {
			if !field.Field(optionalGiven).Bool() {
				continue
			}
			field = field.Field(optionalValue)
		}
		values[i] = r.slots[i].show(field)
	}
	return values
}

// documentation is the doc tag of a field, with backquotes instead of quotes around a 'word'; an apostrophe stays.
func documentation(field reflect.StructField) string {
	text := []byte(field.Tag.Get("doc"))
	for i := range text {
		if text[i] != '\'' || i > 0 && text[i-1] != ' ' && text[i-1] != '(' {
			continue
		}
		if end := bytes.IndexAny(text[i+1:], "' "); end > 0 && text[i+1+end] == '\'' {
			text[i], text[i+1+end] = '`', '`'
		}
	}
	return string(text)
}

// bound reads the tag min or max: a number, or a duration in nanoseconds; without it, the bound of the type.
func bound(field reflect.StructField, tag string, ofType int64) int64 {
	text, has := field.Tag.Lookup(tag)
	if !has {
		return ofType
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("%s: a bound of %q", field.Name, text))
	}
	return int64(d)
}

// standing reads the default, in the Go type that Type documents; nil for none.
func standing(field reflect.StructField, t Type) (value any) {
	text, has := field.Tag.Lookup("default")
	if !has {
		return nil
	}
	var err error
	switch t {
	case Integer, Size, Status:
		var n int64
		n, err = strconv.ParseInt(text, 0, 64)
		value = int(n)
	case Unsigned:
		value, err = strconv.ParseUint(text, 0, 64)
	case Duration:
		value, err = time.ParseDuration(text)
	case Boolean:
		value, err = strconv.ParseBool(text)
	default:
		value = text
	}
	if err != nil {
		panic(fmt.Sprintf("%s: a default of %q: %v", field.Name, text, err))
	}
	return value
}
