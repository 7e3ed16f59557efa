package verb

import (
	"reflect"
	"strings"

	"rdmarun/host/scenario/testbed"
)

// objectRow is a kind of objects that steps make and name with `as`, for later steps to use.
type objectRow struct {
	// names is the type of arguments that name one, yields the result of the verbs that make one.
	names  Type
	yields Yield
	// what is its word in messages, maker the verb that makes one, or the most common of them.
	what, maker string
	// field is the Go type of arguments, find looks one up by its name.
	field reflect.Type
	find  func(call *Call, name string) (any, error)
}

// objects is the table of them.  Package testbed keeps and frees them.
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

// Maker is the kind of object of the step's role that values of the type name, and the verb that makes one.  It is Nothing
// for endpoints, which several verbs make, for faults, which belong to no role, and for types that name no object.
func (t Type) Maker() (Yield, string) {
	if row := objectOf(t); row != nil && row.yields.MakesObject() {
		return row.yields, row.maker
	}
	return Nothing, ""
}

// NamesObject tells whether values of the type name an object that has a Maker.
func (t Type) NamesObject() bool {
	yields, _ := t.Maker()
	return yields != Nothing
}
