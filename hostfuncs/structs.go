package hostfuncs

import (
	"fmt"
	"reflect"
	"strings"
)

// structOf describes a Go struct of the ABI: names and docs from its tags, offsets from the compiler. It
// serves the generator and the tests; no call of a guest comes here.
func structOf[T any](name, doc string) Struct {
	from := reflect.TypeFor[T]()
	s := Struct{Name: name, GoName: from.Name(), Doc: doc, Size: uint32(from.Size())}
	for n := range from.NumField() {
		field := from.Field(n)
		if field.Name == "_" {
			continue
		}
		f := Field{
			Name:   field.Tag.Get("abi"),
			GoName: field.Name,
			Enum:   field.Tag.Get("enum"),
			Handle: field.Type == reflect.TypeFor[Handle](),
			Offset: uint32(field.Offset),
			Size:   uint32(field.Type.Size()),
			Doc:    field.Tag.Get("doc"),
		}
		element := field.Type
		if element.Kind() == reflect.Array {
			f.Count, element = uint32(element.Len()), element.Elem()
		}
		f.Type = fieldType(element)
		s.Fields = append(s.Fields, f)
	}
	return s
}

func fieldType(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "u" + strings.TrimPrefix(of.Kind().String(), "uint")
	case reflect.Int32:
		return "i32"
	case reflect.Struct:
		return structName(of)
	}
	panic(fmt.Sprintf("%s has no place in the ABI", of))
}

// structName is the ABI's name of a struct that another one contains.
func structName(of reflect.Type) string {
	switch of {
	case reflect.TypeFor[Address]():
		return "address"
	case reflect.TypeFor[ConnParam]():
		return "conn_param"
	case reflect.TypeFor[AHAttr]():
		return "ah_attr"
	}
	panic(fmt.Sprintf("%s has no name in the ABI", of))
}
