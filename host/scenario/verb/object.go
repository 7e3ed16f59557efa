package verb

import (
	"reflect"
	"strings"

	"rdmarun/host/scenario/testbed"
)

// objectRow is a kind of things that steps make, give a name with `as`, and name later.
type objectRow struct {
	// names is the type of the arguments that name one, yields what `as` of its maker gives a name to.
	names  Type
	yields Yield
	// what is one in messages, maker the verb that makes it, or the one of several that most use.
	what, maker string
	// field is the type in structs of arguments, find looks for one by its name.
	field reflect.Type
	find  func(call *Call, name string) (any, error)
}

// objects is the table of them; those of a role are freed by package testbed, whose kinds these are.
var objects = []objectRow{
	{
		names: Endpoint, yields: NewEndpoint, what: "endpoint", maker: "create_ep", field: reflect.TypeFor[*testbed.Endpoint](),
		find: func(call *Call, name string) (any, error) { return call.Role.Endpoint(name) },
	},
	{
		names: FaultName, yields: NewFault, what: "fault", maker: "fault", field: reflect.TypeFor[*testbed.Fault](),
		find: func(call *Call, name string) (any, error) { return call.Testbed.Fault(name) },
	},
	objectsOf(Domain, NewDomain, testbed.Domains),
	objectsOf(Queue, NewQueue, testbed.Queues),
	objectsOf(SharedQueue, NewSharedQueue, testbed.SharedQueues),
	objectsOf(Handle, NewHandle, testbed.Handles),
	objectsOf(Window, NewWindow, testbed.Windows),
}

func objectsOf[T any](names Type, yields Yield, kind testbed.Kind[T]) objectRow {
	return objectRow{
		names: names, yields: yields, what: kind.What, maker: kind.Maker, field: reflect.TypeFor[*testbed.Object[T]](),
		find: func(call *Call, name string) (any, error) { return kind.Find(call.Role, name) },
	}
}

// objectOf is the row of a type, nil for one that names no object.
func objectOf(t Type) *objectRow {
	for i := range objects {
		if objects[i].names == t {
			return &objects[i]
		}
	}
	return nil
}

// article puts one before a noun.
func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// Maker tells what of the step's role values of the type name, and the verb that makes it; Nothing for endpoints, which
// several verbs make, for faults, which are of no role, and for a type that names no object.
func (t Type) Maker() (Yield, string) {
	if row := objectOf(t); row != nil && row.yields.MakesObject() {
		return row.yields, row.maker
	}
	return Nothing, ""
}

// NamesObject tells whether values of the type name what Maker tells.
func (t Type) NamesObject() bool {
	yields, _ := t.Maker()
	return yields != Nothing
}

// objectKind is the kind of what a step names and another step, or the role, has made.
func objectKind(t reflect.Type) (kind, bool) {
	if t == reflect.TypeFor[*testbed.Buffer]() {
		return kind{argument: Buffer, find: func(call *Call, name any) (any, error) { return call.named(name.(BufferName)) }}, true
	}
	if t == reflect.TypeFor[*testbed.Role]() {
		return kind{argument: Role, find: func(call *Call, name any) (any, error) { return call.Testbed.Role(name.(string)) }}, true
	}
	for i := range objects {
		if row := &objects[i]; row.field == t {
			return kind{argument: row.names, find: func(call *Call, name any) (any, error) { return row.find(call, name.(string)) }}, true
		}
	}
	return kind{}, false
}
