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

// act defines a verb without results: its name, the page of its manual, a sentence, and the function that runs it.
func act[A any](name, manual, doc string, run func(ctx context.Context, call *Call, args *A) error) Verb {
	return define(Verb{Name: name, Manual: manual, Doc: doc}, func(ctx context.Context, call *Call, args *A) (none, error) {
		return none{}, run(ctx, call, args)
	})
}

// ask defines a verb with results, which `as` gives a name to.
func ask[A, R any](name, manual, doc string, run func(ctx context.Context, call *Call, args *A) (R, error)) Verb {
	return define(Verb{Name: name, Manual: manual, Doc: doc, Yields: Value}, run)
}

// yields is the verb with something else that `as` names, scalar with an argument that `verb: value` stands for, needing
// with a capability that the provider must have, and roleless as one that concerns no role.
func (v Verb) yields(what Yield) Verb         { v.Yields = what; return v }
func (v Verb) scalar(argument string) Verb    { v.Scalar = argument; return v }
func (v Verb) needing(capability string) Verb { v.Capability = capability; return v }
func (v Verb) roleless() Verb                 { v.Roleless = true; return v }

// define completes the row of a verb from the types of its arguments and its result.  Their struct tags are the only
// place where the names stand:
//
//	type pollArguments struct {
//		CQ     queueSide     `arg:"cq,required" doc:"which completion queue of the endpoint"`
//		EP     *testbed.Endpoint `arg:"ep,only" doc:"the endpoint; without it the role's only one"`
//		WRID   uint64        `arg:"wr_id" default:"0" max:"0xffff" doc:"comes back in the completion"`
//	}
//
//	type completion struct {
//		Status rdmacore.WCStatus          `result:"status" default:"SUCCESS" doc:"how it ended"`
//		Length Optional[uint32]           `result:"byte_len" doc:"bytes received"`
//	}
//
// The Go type of a field is its type in scenarios (kindOf); its bounds are those of the Go type, or min and max.  After the
// name of an argument may follow:
//
//	required  a step must give it
//	only      an endpoint that no step names is the only one of the role
//	inline    its keys stand among the verb's own (Argument.Inline)
//	message   Argument.Message
//
// and after that of a result: varies, hex and failed (Result.OfFailure).  A struct without a tag, embedded or not, has
// fields of the verb itself.  In doc, a word 'in quotes' stands for one in backquotes, which a tag cannot have.
//
// What the types can do beside that:
//
//   - arguments with a method check or needs answer Verb.Check and Verb.Needs with it.  Before the run only what is known
//     is filled in: see Optional.
//   - arguments with a method find look up what they need of the objects that they name, before the verb runs.
//   - a result with a method summary says in a few words what came out (Outcome.Summary).  The method sees the result alone:
//     the next step may have reused the Call when somebody asks.
//
// The tags are read when the verb is first asked for (Table.Lookup): a scenario has few of all verbs.
func define[A, R any](row Verb, run func(ctx context.Context, call *Call, args *A) (R, error)) Verb {
	row.describe = func(v *Verb) { describe(v, run) }
	return row
}

func describe[A, R any](v *Verb, run func(ctx context.Context, call *Call, args *A) (R, error)) {
	type (
		checker interface{ check() *Refusal }
		needer  interface{ needs() string }
		finder  interface{ find(call *Call) error }
		summary interface{ summary() string }
	)
	arguments, results := argumentsOf(reflect.TypeFor[A]()), resultsOf(reflect.TypeFor[R]())
	v.Arguments, v.Results = arguments.rows, results.rows
	v.Waits = v.Argument("within") >= 0
	_, finds := any(new(A)).(finder)
	for i := range reflect.TypeFor[A]().NumField() {
		if part := reflect.TypeFor[A]().Field(i); part.Anonymous && !finds && reflect.PointerTo(part.Type).Implements(reflect.TypeFor[finder]()) {
			panic(v.Name + ": two parts of its arguments have a method find; they need one that calls both")
		}
	}
	_, sums := any(new(R)).(summary)
	tellsFailure := slices.ContainsFunc(results.rows, func(r Result) bool { return r.OfFailure })
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
		if sums && (err == nil || tellsFailure) {
			call.Outcome.Summary = any(&result).(summary).summary
		}
		return err
	}
	known := func(call *Call) any {
		args := new(A)
		// Without a run there are no objects to be found, and so nothing fails.
		_ = arguments.fill(nil, reflect.ValueOf(args).Elem(), call.Arguments, call.Later)
		return args
	}
	if _, checks := any(new(A)).(checker); checks {
		v.Check = func(call *Call) *Refusal { return known(call).(checker).check() }
	}
	if _, needs := any(new(A)).(needer); needs {
		v.Needs = func(call *Call) string { return known(call).(needer).needs() }
	}
}

// none is the arguments of a verb that takes none, and the result of one that has none.
type none = struct{}

// Optional is an argument that a step may leave out, where that is not the same as its default; or a field that a result
// may lack.
type Optional[T any] struct {
	Value T
	Given bool
	// Later tells, of an argument before the run, that only the run will know the value.
	Later bool
}

// some is a field that a result has.
func some[T any](value T) Optional[T] { return Optional[T]{Value: value, Given: true} }

// Known tells whether there is a value, and not only later.
func (o Optional[T]) Known() bool { return o.Given && !o.Later }

// Or is the value, or another one where there is none.
func (o Optional[T]) Or(other T) T {
	if o.Known() {
		return o.Value
	}
	return other
}

func (Optional[T]) optional() {}

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

// tagged are the fields of a struct that have a tag, with those of the structs within it that have none.
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

// assign gives a struct the fields that another has by the same names in types that Go converts, Optional ones as far as
// they are given.
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

// argumentFields are the fields of a struct of arguments.
type argumentFields struct {
	rows  []Argument
	slots []slot
}

// argumentsOf reads the tags of a struct of arguments.  A wrong tag is a mistake of this package, which its tests find.
func argumentsOf(t reflect.Type) *argumentFields {
	a := &argumentFields{}
	for _, field := range tagged(t, "arg") {
		words := strings.Split(field.Tag.Get("arg"), ",")
		k := slotOf(field)
		row := Argument{
			Name: words[0], Type: k.argument, Words: k.words, Fields: k.fields(), Group: field.Tag.Get("group"), Doc: documentation(field),
			Min: bound(field, "min", k.min), Max: bound(field, "max", k.max), Default: standing(field, k.argument),
		}
		for _, word := range words[1:] {
			switch word {
			case "required":
				row.Required = true
			case "inline":
				row.Inline = true
			case "message":
				row.Message = true
			case "only":
				k.only = true
			default:
				panic(fmt.Sprintf("%s.%s: no option %q of an argument", t, field.Name, word))
			}
		}
		a.rows, a.slots = append(a.rows, row), append(a.slots, k)
	}
	return a
}

// fill gives a struct its arguments.  Before the run call is nil, and later tells which values only the run will know.
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

// fillNamed gives a struct its arguments by their names.  One that is not given has its default, or stays as it is.
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
		words := strings.Split(field.Tag.Get("result"), ",")
		k := slotOf(field)
		row := Result{Name: words[0], Type: k.result, Default: standing(field, k.result), Doc: documentation(field)}
		if row.Type == Word {
			row.Words = k.words
		}
		for _, word := range words[1:] {
			switch word {
			case "varies":
				row.Varies = true
			case "hex":
				row.Hex = true
			case "failed":
				row.OfFailure = true
			default:
				panic(fmt.Sprintf("%s.%s: no option %q of a result", t, field.Name, word))
			}
		}
		r.rows, r.slots = append(r.rows, row), append(r.slots, k)
	}
	return r
}

// values are the fields of a result as scenarios see them; nil for one that it lacks, as a call that failed lacks all but
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

// documentation is the doc tag of a field, with backquotes for the quotes around 'a-word', which is not an apostrophe.
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

// standing reads the default, in the Go type that Type says; nil for none.
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
