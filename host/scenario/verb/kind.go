package verb

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// kind is how scenarios write and see values of a Go type.
type kind struct {
	// field is the Go type that has this kind; nil for a kind of many types.
	field reflect.Type
	// argument and result are its types as an argument and as a result.
	argument, result Type
	words            []string
	min, max         int64
	// options are the fields of a mapping, or of each of a list of mappings.
	options *argumentFields
	// set assigns a value of the Go type that Type documents to a field; call is nil before the run.
	set func(call *Call, field reflect.Value, value any) error
	// find looks up the object that a value names; nil for kinds that name none.
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

// Go types that distinguish arguments that would have the same type otherwise.
type (
	byteCount    int      // Size
	eventStatus  int      // Status
	fraction     float64  // Fraction
	rate         float64  // Rate, bits or things a second
	peerName     string   // Peer
	localAddress string   // Address
	roleName     string   // Role
	rolePair     []string // Roles
	instances    []string // Instances
	// sharedQueueName is a SharedQueue that the verb itself looks up.
	sharedQueueName string
	peerRights      rdmacore.Access // PeerRights
	sizeList        []int           // Sizes
	// moreArguments is empty: its contents are merged into the verb's own arguments.
	moreArguments struct{}
	// content is a buffer or data.
	content struct {
		Name   BufferName
		Buffer *testbed.Buffer // nil: it is Data
		Data   DataValue
	}
)

// kinds has the Go types with a kind of their own; kindOf derives that of others from their structure.
var kinds = sync.OnceValue(func() map[reflect.Type]kind {
	byType := make(map[reflect.Type]kind)
	for _, k := range []kind{
		written[time.Duration](Duration),
		// some devices set all bits for no limit
		written[byteCount](Size).shown(Size, func(v reflect.Value) any { return uint64(v.Int()) }),
		written[eventStatus](Status),
		written[fraction](Fraction),
		written[rate](Rate),
		written[peerName](Peer),
		written[localAddress](Address),
		written[roleName](Role),
		written[rolePair](Roles),
		written[instances](Instances),
		written[MeshPairs](Pairs),
		written[dropped](Word).of(dropWords()),
		written[sharedQueueName](SharedQueue),
		written[rdmacore.Access](Rights).shown(Text, text),
		written[peerRights](PeerRights),
		written[rdmacore.WCFields](Fields),
		written[sizeList](Sizes),
		written[*regexp.Regexp](Pattern),
		written[Units](UnitMap),
		written[DataValue](Data),
		written[[]byte](Data),
		written[RemoteMemory](Remote),
		written[FieldLayout](Layout),
		written[QueuePairAttributes](QueuePair),
		written[ConditionValue](Condition),
		written[CounterChecks](Counters),
		written[Invocation](Word),
		written[testbed.Input](Word),
		written[CommandLine](Word),
		written[testbed.Gathering](Word),
		{
			field: reflect.TypeFor[*testbed.Buffer](), argument: Buffer,
			find: func(call *Call, name any) (any, error) { return call.named(name.(BufferName)) },
		},
		{
			field: reflect.TypeFor[*testbed.Role](), argument: Role,
			find: func(call *Call, name any) (any, error) { return call.Testbed.Role(name.(string)) },
		},
		{field: reflect.TypeFor[content](), argument: Content, set: setContent},
		{
			field: reflect.TypeFor[moreArguments](), argument: Arguments,
			set: func(*Call, reflect.Value, any) error { return nil },
		},

		// The enumerations of verbs.h and rdma_cma.h.
		named(rdmacore.ParseEventType), named(rdmacore.ParseAsyncEventType), named(rdmacore.ParseJoinFlags),
		named(rdmacore.ParsePortSpace),
		named(rdmacore.ParseWCStatus), named(rdmacore.ParseWCOpcode), named(rdmacore.ParseQPState),
		named(rdmacore.ParseQPType), named(rdmacore.ParseOpcode),
		named(rdmacore.ParseSelectivity), named(rdmacore.ParseMeasureKind), named(rdmacore.ParseMeasureCompletion),
		flags(rdmacore.ParsePlacement), flags(rdmacore.ParseSendOps), flags(rdmacore.ParsePacketOps),
	} {
		byType[k.field] = k
	}
	for _, object := range objects {
		find := func(call *Call, name any) (any, error) { return object.find(call, name.(string)) }
		byType[object.field] = kind{argument: object.Type, find: find}
	}
	return byType
})

// kindOf is the kind of a Go type; words are the possible values of strings, or those of an enumeration that are
// allowed.
func kindOf(t reflect.Type, words string) kind {
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

// plain is a kind with the same values in scenarios and in Go, except for the width of numbers.
func plain(t Type) kind { return kind{argument: t, result: t, set: convert, show: scenarioValue} }

// written is the plain kind of a Go type.
func written[T any](t Type) kind {
	k := plain(t)
	k.field = reflect.TypeFor[T]()
	return k
}

func (k kind) of(words []string) kind        { k.words = words; return k }
func (k kind) within(least, most int64) kind { k.min, k.max = least, most; return k }

// shown is the kind with another form of results.
func (k kind) shown(as Type, show func(reflect.Value) any) kind {
	k.result, k.show = as, show
	return k
}

func text(v reflect.Value) any { return v.Interface().(fmt.Stringer).String() }

// convert assigns a value of a similar Go type.
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

// scenarioValue is the value of a field in the Go type that Type documents.
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

// mappings is the kind of a struct, a mapping in scenarios, or of a list of structs.
func mappings(argument Type, t reflect.Type) kind {
	options := argumentsOf(t)
	return kind{argument: argument, options: options, set: func(call *Call, field reflect.Value, value any) error {
		if argument == Options {
			return options.fillNamed(call, field, value.(map[string]any), true)
		}
		list := value.([]map[string]any)
		field.Set(reflect.MakeSlice(field.Type(), len(list), len(list)))
		for i, each := range list {
			if err := options.fillNamed(call, field.Index(i), each, true); err != nil {
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

// flags is a list of the words that a parser of rdmacore reads, joined by | for the parser.
func flags[T fmt.Stringer](parse func(string) (T, error)) kind {
	k := named(parse)
	one := k.set
	k.argument, k.result = Words, Text
	k.set = func(call *Call, field reflect.Value, value any) error {
		return one(call, field, strings.Join(value.([]string), "|"))
	}
	return k
}

// named is a word that a parser of rdmacore reads.
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

// Only rdmacore has the names of verbs.h; this takes them from there.

func messageNames() []string { return namesOf(rdmacore.ParseCMMessage) }

// MeasureKinds are what can be measured.
func MeasureKinds() []string { return namesOf(rdmacore.ParseMeasureKind) }

// AccessNames are the rights that a buffer can have.
func AccessNames() []string { return namesOf(rdmacore.ParseAccess) }

// standardFields is IBV_WC_STANDARD_FLAGS.
const standardFields = "STANDARD"

// FieldNames are the fields of completions that a queue can have.
func FieldNames() []string {
	return append([]string{standardFields}, namesOf(rdmacore.ParseWCFields)...)
}

// ParseField is the field, or the fields, of a name.
func ParseField(name string) (rdmacore.WCFields, error) {
	if name == standardFields {
		return rdmacore.WCFieldsStandard, nil
	}
	return rdmacore.ParseWCFields(name)
}

// BackingNames are what the memory of a buffer can be.
func BackingNames() []string { return namesOf(rdmacore.ParseBacking) }

// namesOf asks a parser for a name that nothing has: its error lists those that there are.
func namesOf[T any](parse func(string) (T, error)) []string {
	var unknown *rdmacore.NameError
	if _, err := parse("?"); errors.As(err, &unknown) {
		return unknown.Valid
	}
	return nil
}

// highestErrno bounds the search for errno names; Linux has 133, and some of its own up to 530.
const highestErrno = 531

// notSupportedAlias is the other name of EOPNOTSUPP, the one number with two.
const notSupportedAlias = "ENOTSUP"

// ErrnoNames lists the names that `expect: {errno: ..}` takes.
func ErrnoNames() []string {
	names := []string{notSupportedAlias}
	for errno := syscall.Errno(1); errno < highestErrno; errno++ {
		if name := explain.ErrnoName(errno); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ErrnoName is the name of an errno, or its number where it has none.
func ErrnoName(errno syscall.Errno) string {
	return cmp.Or(explain.ErrnoName(errno), errno.Error())
}

// ErrnoAlias is another name that an errno has; its name where it has no other.
func ErrnoAlias(errno syscall.Errno) string {
	if errno == syscall.EOPNOTSUPP {
		return notSupportedAlias
	}
	return ErrnoName(errno)
}

// ParseErrno is the reverse of ErrnoName and ErrnoAlias.
func ParseErrno(name string) (syscall.Errno, bool) {
	for errno := syscall.Errno(1); errno < highestErrno; errno++ {
		if known := explain.ErrnoName(errno); known != "" && (known == name || ErrnoAlias(errno) == name) {
			return errno, true
		}
	}
	return 0, false
}

// highestReject bounds the search for reject reasons, IBTA volume 1, 12.6.7.2.
const highestReject = 64

// RejectReasons lists the names of reject reasons.
func RejectReasons() []string {
	var names []string
	for reason := 1; reason < highestReject; reason++ {
		if name := explain.RejectName(reason); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ParseRejectReason finds a reject reason by its name.
func ParseRejectReason(name string) (int, bool) {
	for reason := 1; reason < highestReject; reason++ {
		if explain.RejectName(reason) == name {
			return reason, true
		}
	}
	return 0, false
}
