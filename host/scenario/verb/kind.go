package verb

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// kind is how values of a Go type stand in scenarios.
type kind struct {
	// field is the Go type, where it says all of it.
	field reflect.Type
	// argument and result are the types of arguments and results.
	argument, result Type
	words            []string
	min, max         int64
	// options are the fields of a mapping, or of each of a list of mappings.
	options *argumentFields
	// set gives a field a value, which has the Go type that Type says; call is nil before the run.
	set func(call *Call, field reflect.Value, value any) error
	// find looks for the object that a value names; nil for what is no object.
	find func(call *Call, name any) (any, error)
	// show is the value of a field as scenarios see it.
	show func(reflect.Value) any
}

// fields are the keys of a mapping; nil for what is none.
func (k *kind) fields() []Argument {
	if k.options == nil {
		return nil
	}
	return k.options.rows
}

// Go types of arguments that scenarios tell apart, and Go does not.
type (
	byteCount    int      // Size
	eventStatus  int      // Status
	fraction     float64  // Fraction
	rate         float64  // Rate, bits or things a second
	peerName     string   // Peer
	localAddress string   // Address
	roleName     string   // Role
	rolePair     []string // Roles
	// sharedQueueName is a SharedQueue that is looked for later.
	sharedQueueName string
	peerRights      rdmacore.Access // PeerRights
	sizeList        []int           // Sizes
	// moreArguments has nothing: they are merged into the verb's own.
	moreArguments struct{}
	// content is a buffer or data.
	content struct {
		Name   BufferName
		Buffer *testbed.Buffer // nil: it is Data
		Data   DataValue
	}
)

// kinds are those of the Go types that say by themselves how they are written; the others kindOf tells by what they are made of.
var kinds = sync.OnceValue(func() map[reflect.Type]kind {
	byType := make(map[reflect.Type]kind)
	for _, k := range []kind{
		written[time.Duration](Duration),
		written[byteCount](Size).shown(Size, func(v reflect.Value) any { return uint64(v.Int()) }), // some devices bound nothing, with all bits set
		written[eventStatus](Status),
		written[fraction](Fraction),
		written[rate](Rate),
		written[peerName](Peer),
		written[localAddress](Address),
		written[roleName](Role),
		written[rolePair](Roles),
		written[dropped](Word).of(dropWords()),
		written[sharedQueueName](SharedQueue),
		written[rdmacore.Access](Rights).shown(Text, text),
		written[peerRights](PeerRights),
		written[rdmacore.WCFields](Fields),
		written[sizeList](Sizes),
		written[DataValue](Data),
		written[[]byte](Data),
		written[RemoteMemory](Remote),
		written[FieldLayout](Layout),
		written[QueuePairAttributes](QueuePair),
		written[ConditionValue](Condition),
		written[CounterChecks](Counters),
		{field: reflect.TypeFor[content](), argument: Content, set: setContent},
		{field: reflect.TypeFor[moreArguments](), argument: Arguments, set: func(*Call, reflect.Value, any) error { return nil }},

		// The enumerations of verbs.h and rdma_cma.h.
		named(rdmacore.ParseEventType), named(rdmacore.ParseAsyncEventType), named(rdmacore.ParseJoinFlags), named(rdmacore.ParsePortSpace),
		named(rdmacore.ParseWCStatus), named(rdmacore.ParseWCOpcode), named(rdmacore.ParseQPState), named(rdmacore.ParseQPType), named(rdmacore.ParseOpcode),
		named(rdmacore.ParseSelectivity), named(rdmacore.ParseMeasureKind), named(rdmacore.ParseMeasureCompletion),
		flags(rdmacore.ParsePlacement), flags(rdmacore.ParseSendOps),
	} {
		byType[k.field] = k
	}
	return byType
})

// kindOf is the kind of a Go type; words are those of a string or a list of strings, or fewer than all of an enumeration.
func kindOf(t reflect.Type, words string) kind {
	if k, is := objectKind(t); is {
		return k
	}
	if k, is := kinds()[t]; is {
		if words != "" { // not all of an enumeration
			k.words = strings.Split(words, "|")
		}
		return k
	}
	if t.Implements(reflect.TypeFor[fmt.Stringer]()) {
		return plain(Text).shown(Text, text)
	}
	switch t.Kind() {
	case reflect.Bool:
		return plain(Boolean)
	case reflect.Int:
		return plain(Integer)
	case reflect.Int32:
		return plain(Integer).within(math.MinInt32, math.MaxInt32)
	case reflect.Uint8:
		return plain(Integer).within(0, math.MaxUint8)
	case reflect.Uint16:
		return plain(Integer).within(0, math.MaxUint16)
	case reflect.Uint32:
		return plain(Integer).within(0, math.MaxUint32)
	case reflect.Uint64:
		return plain(Unsigned)
	case reflect.String:
		if words != "" {
			return plain(Word).of(strings.Split(words, "|"))
		}
		return plain(Text)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return mappings(OptionList, t.Elem())
		}
		return plain(Words).of(strings.Split(words, "|"))
	case reflect.Struct:
		return mappings(Options, t)
	}
	panic(fmt.Sprintf("no scenario writes values of type %s", t))
}

// plain is a kind whose values scenarios and fields have alike, but for the width of numbers.
func plain(t Type) kind { return kind{argument: t, result: t, set: convert, show: scenarioValue} }

// written is the plain kind of a Go type.
func written[T any](t Type) kind {
	k := plain(t)
	k.field = reflect.TypeFor[T]()
	return k
}

func (k kind) of(words []string) kind        { k.words = words; return k }
func (k kind) within(least, most int64) kind { k.min, k.max = least, most; return k }

// shown is the kind with results of another type, or another value.
func (k kind) shown(as Type, show func(reflect.Value) any) kind {
	k.result, k.show = as, show
	return k
}

func text(v reflect.Value) any { return v.Interface().(fmt.Stringer).String() }

// convert gives a field a value of a Go type of the same sort.
func convert(_ *Call, field reflect.Value, value any) error {
	switch v := value.(type) {
	case int:
		if field.CanInt() {
			field.SetInt(int64(v))
		} else {
			field.SetUint(uint64(v))
		}
	case uint64:
		field.SetUint(v)
	case bool:
		field.SetBool(v)
	case string:
		field.SetString(v)
	case time.Duration:
		field.SetInt(int64(v))
	case float64:
		field.SetFloat(v)
	case DataValue:
		if field.Kind() == reflect.Slice { // of bytes
			field.SetBytes(v.Bytes)
		} else {
			field.Set(reflect.ValueOf(value))
		}
	default:
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
	}
	return nil
}

// scenarioValue is a field in the Go type that Type says.
func scenarioValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Int, reflect.Int32:
		if v.Type() == reflect.TypeFor[time.Duration]() {
			break
		}
		return int(v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int(v.Uint())
	case reflect.Uint64:
		return v.Uint()
	case reflect.String:
		return v.String()
	}
	return v.Interface()
}

// mappings is a mapping, or a list of them, whose keys are the fields of a struct.
func mappings(argument Type, t reflect.Type) kind {
	options := argumentsOf(t)
	fill := func(call *Call, field reflect.Value, given map[string]any) error {
		values := make([]any, len(options.rows))
		for i := range options.rows {
			if value, has := given[options.rows[i].Name]; has {
				values[i] = value
			} else {
				values[i] = options.rows[i].Default
			}
		}
		return options.fill(call, field, values, nil)
	}
	return kind{argument: argument, options: options, set: func(call *Call, field reflect.Value, value any) error {
		if argument == Options {
			return fill(call, field, value.(map[string]any))
		}
		list := value.([]map[string]any)
		field.Set(reflect.MakeSlice(field.Type(), len(list), len(list)))
		for i, each := range list {
			if err := fill(call, field.Index(i), each); err != nil {
				return ofEntry("entry", i, err)
			}
		}
		return nil
	}}
}

func setContent(call *Call, field reflect.Value, value any) error {
	if data, is := value.(DataValue); is {
		field.Set(reflect.ValueOf(content{Data: data}))
		return nil
	}
	c := content{Name: value.(BufferName)}
	var err error
	if call != nil {
		c.Buffer, err = call.named(c.Name)
	}
	field.Set(reflect.ValueOf(c))
	return err
}

// flags is a list of Words whose names a parser of rdmacore knows, with | between them.
func flags[T fmt.Stringer](parse func(string) (T, error)) kind {
	k := named(parse)
	one := k.set
	k.argument, k.result = Words, Text
	k.set = func(call *Call, field reflect.Value, value any) error {
		return one(call, field, strings.Join(value.([]string), "|"))
	}
	return k
}

// named is a Word whose names a parser of rdmacore knows.
func named[T fmt.Stringer](parse func(string) (T, error)) kind {
	return kind{
		field: reflect.TypeFor[T](), argument: Word, result: Word, words: namesOf(parse),
		set: func(_ *Call, field reflect.Value, value any) error {
			parsed, err := parse(value.(string))
			if err == nil {
				field.Set(reflect.ValueOf(parsed))
			}
			return err
		},
		show: func(v reflect.Value) any { return (*v.Addr().Interface().(*T)).String() },
	}
}
