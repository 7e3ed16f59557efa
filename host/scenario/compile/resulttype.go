package compile

import (
	"time"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/verb"
)

// TookOfResult is the member of each result that tells how long its step took.
const TookOfResult = "took"

// resultType is the type of a result in expressions.
func resultType(v *verb.Verb, layout verb.FieldLayout) expression.Type {
	object := expression.Object{TookOfResult: expression.TypeOf(time.Duration(0))}
	for _, result := range v.Results {
		object[result.Name] = fieldType(result.Type)
	}
	for _, field := range layout {
		object[field.Name] = expression.Integer
		if field.Bytes == 8 {
			object[field.Name] = expression.Unsigned
		}
	}
	return object
}

func fieldType(t verb.Type) expression.Type {
	switch t {
	case verb.Integer, verb.Status:
		return expression.Integer
	case verb.Unsigned, verb.Size:
		return expression.Unsigned
	case verb.Boolean:
		return expression.Boolean
	case verb.Duration:
		return expression.TypeOf(time.Duration(0))
	case verb.Data:
		return expression.TypeOf([]byte(nil))
	}
	return expression.String
}
