package compile

import (
	"fmt"
	"math"
	"slices"
	"time"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/jsonschema"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// typeRow is how values of a type are read.
type typeRow struct {
	// compile reads what is no scalar, or names something; nil: it is a scalar for parse and convert.
	compile func(d *decoder, argument *verb.Argument, node *syntax.Node, at place) *Value
	// parse reads a scalar without expressions.
	parse func(node *syntax.Node) (any, *problem)
	// plain is set if a scalar in quotes has another type, text if expressions may be in the middle of it.
	plain, text bool
	// kinds are the results of expressions that convert takes, nil for all; wants is their name in messages if it is
	// not the type's.
	kinds   []string
	wants   string
	convert func(argument *verb.Argument, value any) (any, *problem)
	// result is the type of results in expressions.
	result expression.Type
	// definition is the name of the type in JSON Schemas, "" for a text; schema describes an argument of it, nil for
	// the definition.
	definition string
	schema     func(argument *verb.Argument) jsonschema.Object
}

// typeTable has a row for each type.  It is made for a decoder: rows read by methods that read by rows, which Go would
// call a cycle in a package's variable.
type typeTable [verb.Types]typeRow

// The kinds of results of expressions (expression.Compiled.Returns).
const (
	anInteger = "an integer"
	aFraction = "a fraction"
	aString   = "a string"
	aBoolean  = "a boolean"
	aDuration = "a duration"
	aList     = "a list"
	aRecord   = "a record"
	someBytes = "bytes"
)

type compileFunc = func(*decoder, *verb.Argument, *syntax.Node, place) *Value

func newTypeTable() *typeTable {
	numbers := []string{anInteger, aFraction}
	durationType := expression.TypeOf(time.Duration(0))
	// read is a type that compile reads.  A scalar of it is text, a name or a word; kinds are those of expressions,
	// strings unless others are named.
	read := func(compile compileFunc, kinds ...string) typeRow {
		if kinds == nil {
			kinds = []string{aString}
		}
		return typeRow{
			compile: compile, parse: parseText, text: true, kinds: kinds, convert: convertString,
			result: expression.String,
		}
	}
	// looks is a row with the schema of its arguments.
	looks := func(row typeRow, schema func(*verb.Argument) jsonschema.Object) typeRow {
		row.schema = schema
		return row
	}
	object, rights := read((*decoder).objectName), looks(read((*decoder).rights), rightsSchema)
	data := read((*decoder).data, someBytes, aString)
	data.wants, data.convert, data.result, data.definition = "bytes", convertData, expression.TypeOf([]byte(nil)),
		"data"
	remote := looks(read((*decoder).remote, aRecord), remoteSchema)
	remote.wants, remote.convert = "a record with addr and rkey", remoteFrom
	return &typeTable{
		verb.Integer: {parse: parsed(parseNumber), plain: true, kinds: numbers, convert: convertInteger,
			result:     expression.Integer,
			definition: "integer", schema: integerSchema},
		verb.Unsigned: {parse: parseBits, plain: true, kinds: numbers, convert: convertUnsigned,
			result:     expression.Unsigned,
			definition: "integer", schema: integerSchema},
		verb.Size: {
			parse: parsed(parseSize), kinds: numbers, convert: convertSize, result: expression.Unsigned,
			definition: "size",
		},
		verb.Status: {parse: parsed(parseStatus), kinds: []string{anInteger, aString}, convert: convertStatus,
			result:     expression.Integer,
			definition: "status"},
		verb.Duration: {parse: parsed(quantity.ParseTime), kinds: []string{aDuration, aString},
			convert: convertDuration, result: durationType,
			definition: "duration"},
		verb.Boolean: {parse: parsed(parseBoolean), plain: true, kinds: []string{aBoolean}, convert: convertBoolean,
			result:     expression.Boolean,
			definition: "boolean"},
		verb.Fraction: {
			parse: parsed(parseFraction), kinds: numbers, convert: convertFraction, result: expression.String,
			schema: fractionSchema,
		},
		verb.Rate: {parse: parsed(quantity.ParseRate), kinds: append(numbers, aString), convert: convertRate,
			result: expression.Float,
			schema: rateSchema},
		verb.Number: {
			parse: parsed(parseFloat), plain: true, kinds: numbers, convert: convertFraction,
			result: expression.Float, schema: numberSchema,
		},
		verb.Sizes: {compile: (*decoder).sizes, parse: parsed(parseSizes), kinds: []string{
			anInteger, aList, aString,
		}, convert: sizesOf,
			result: expression.String, schema: sizesSchema},
		verb.Text: {parse: parseText, text: true, convert: convertText, result: expression.String},
		verb.Any:  {parse: parseAny, text: true, convert: convertAny, result: expression.String},

		verb.Word:        looks(read(nil), wordSchema),
		verb.Address:     read(nil),
		verb.Buffer:      read((*decoder).bufferName),
		verb.Endpoint:    object,
		verb.Peer:        read((*decoder).peer),
		verb.Role:        read((*decoder).roleName),
		verb.FaultName:   object,
		verb.Domain:      object,
		verb.Queue:       object,
		verb.SharedQueue: object,
		verb.Handle:      object,
		verb.Window:      object,

		verb.Data:       data,
		verb.Content:    looks(read((*decoder).content, someBytes, aString), contentSchema),
		verb.Remote:     remote,
		verb.Condition:  read((*decoder).conditionArgument),
		verb.Words:      looks(read((*decoder).wordList), wordsSchema),
		verb.Roles:      looks(read((*decoder).roleList), rolesSchema),
		verb.Instances:  read((*decoder).instances),
		verb.Pairs:      looks(read((*decoder).pairs, aList), pairsSchema),
		verb.Rights:     rights,
		verb.PeerRights: rights,
		verb.Fields:     looks(read((*decoder).fields), fieldsSchema),
		verb.Layout:     looks(read((*decoder).layout), LayoutSchema),
		verb.QueuePair:  looks(read((*decoder).queuePair), mappingSchema),
		verb.Arguments:  looks(read((*decoder).optionMapping), mappingSchema), // merged before it is read
		verb.Options:    looks(read((*decoder).optionMapping), optionSchema),
		verb.OptionList: looks(read((*decoder).optionList), optionListSchema),
		verb.Counters:   looks(read((*decoder).counters), countersSchema),
		verb.Pattern:    read((*decoder).patternArgument),
		verb.UnitMap:    looks(read((*decoder).units), unitsSchema),
	}
}

// argument compiles a value of any type.
func (d *decoder) argument(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if compile := d.types[argument.Type].compile; compile != nil {
		return compile(d, argument, node, at)
	}
	return d.scalar(argument, node, at)
}

// parse reads a scalar without expressions as the type of an argument.
func (d *decoder) parse(argument *verb.Argument, node *syntax.Node) (any, *problem) {
	row := &d.types[argument.Type]
	if row.plain && node.Style != syntax.Plain {
		remedy := "remove the quotes"
		if _, bad := row.parse(syntax.New(nil, node.Value)); bad != nil {
			remedy = bad.Hint // no value of the type without them, either
		}
		return nil, wrongType(argument.Type.String(), quoted(node.Value)+" in quotes is a string and", remedy)
	}
	value, bad := row.parse(node)
	if bad != nil {
		return nil, bad
	}
	return value, check(argument, value)
}

// convert fits the result of an expression to the type of an argument.
func (d *decoder) convert(argument *verb.Argument, value any) (any, *problem) {
	converted, bad := d.types[argument.Type].convert(argument, value)
	if bad != nil {
		return nil, bad
	}
	return converted, check(argument, converted)
}

// parsed is a parser of text as one of scalars.
func parsed[T any](parse func(text string) (T, *problem)) func(*syntax.Node) (any, *problem) {
	return func(node *syntax.Node) (any, *problem) { return parse(node.Value) }
}

func parseText(node *syntax.Node) (any, *problem) { return node.Value, nil }
func parseAny(node *syntax.Node) (any, *problem)  { return inferred(node), nil }

func parseBits(node *syntax.Node) (any, *problem) {
	value, bad := parseNumber(node.Value)
	return expression.Bits(value), bad
}

func convertText(_ *verb.Argument, value any) (any, *problem) { return textOf(value), nil }
func convertAny(_ *verb.Argument, value any) (any, *problem)  { return value, nil }

// unlike is what is wrong with a value that an expression has made.
func unlike(argument *verb.Argument, value any) *problem {
	return wrongType(argument.Type.String(), expression.Word(value), "")
}

func convertString(argument *verb.Argument, value any) (any, *problem) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	return nil, unlike(argument, value)
}

func convertInteger(argument *verb.Argument, value any) (any, *problem) {
	n, ok := whole(value)
	if fraction, isFloat := value.(float64); isFloat && !ok {
		return nil, wrongType(argument.Type.String(), fmt.Sprint(fraction), "int(..) cuts the fraction off")
	}
	if !ok {
		return nil, unlike(argument, value)
	}
	return n, nil
}

func convertUnsigned(argument *verb.Argument, value any) (any, *problem) {
	n, bad := convertInteger(argument, value)
	return expression.Bits(n), bad
}

// convertSize is an integer that an int holds.
func convertSize(argument *verb.Argument, value any) (any, *problem) {
	n, bad := convertInteger(argument, value)
	if _, wide := n.(uint64); wide {
		return nil, beyondInteger(fmt.Sprint(n))
	}
	return n, bad
}

func convertStatus(argument *verb.Argument, value any) (any, *problem) {
	if text, isText := value.(string); isText {
		return parseStatus(text)
	}
	return convertSize(argument, value)
}

func convertDuration(_ *verb.Argument, value any) (any, *problem) {
	switch v := value.(type) {
	case time.Duration:
		return v, nil
	case string:
		return quantity.ParseTime(v)
	}
	return nil, wrongType("a duration", expression.Word(value), "250ms is one, and so is a parameter of type duration")
}

func convertBoolean(_ *verb.Argument, value any) (any, *problem) {
	if b, ok := value.(bool); ok {
		return b, nil
	}
	return nil, wrongType("true or false", expression.Word(value), "")
}

func convertFraction(argument *verb.Argument, value any) (any, *problem) {
	if f, ok := expression.Number(value); ok {
		return f, nil
	}
	return nil, unlike(argument, value)
}

func convertRate(argument *verb.Argument, value any) (any, *problem) {
	if text, isText := value.(string); isText {
		return quantity.ParseRate(text)
	}
	return convertFraction(argument, value)
}

// whole is an integer, as an int where that is large enough. A fraction with a whole value is one, too, because 10 / 2
// is a fraction to the expression language.
func whole(value any) (any, bool) {
	switch v := value.(type) {
	case int:
		return v, true
	case uint64:
		if v <= math.MaxInt64 {
			return int(v), true
		}
		return v, true
	case float64:
		if v == float64(int(v)) {
			return int(v), true
		}
	}
	return nil, false
}

// TookOfResult is the member of each result with the time of its step.
const TookOfResult = "took"

// resultType is the type of a result in expressions; named are the results that the arguments of the step name.
func (d *decoder) resultType(v *verb.Verb, named []verb.Result) expression.Type {
	object := expression.Object{TookOfResult: d.types[verb.Duration].result}
	for _, result := range slices.Concat(v.Results, named) {
		object[result.Name] = d.types[result.Type].result
	}
	return object
}

type object = jsonschema.Object

// Schema is the JSON Schema of what can stand for an argument, an expression included.
func Schema(argument *verb.Argument) jsonschema.Object {
	switch row := &newTypeTable()[argument.Type]; {
	case row.schema != nil:
		return row.schema(argument)
	case row.definition != "":
		return jsonschema.Ref(row.definition)
	}
	return jsonschema.Scalar() // a name or a text
}

// Definition is the name of the definition of a type's values in JSON Schemas.
func Definition(t verb.Type) string {
	if name := newTypeTable()[t].definition; name != "" {
		return name
	}
	return "text"
}

// orExpression is a schema, or an expression instead.
func orExpression(schema object) object {
	return object{"anyOf": []any{schema, jsonschema.Expression()}}
}

func integerSchema(argument *verb.Argument) object {
	integer := object{"type": []string{"integer", "string"}, "pattern": jsonschema.IntegerForm}
	if argument.Min != 0 || argument.Max != 0 {
		integer["minimum"], integer["maximum"] = argument.Min, argument.Max
	}
	return integer
}

func fractionSchema(*verb.Argument) object {
	return object{"type": []string{"number", "string"}, "minimum": 0, "maximum": 1, "pattern": jsonschema.FractionForm}
}

func rateSchema(*verb.Argument) object {
	return object{"type": "string", "pattern": jsonschema.RateForm}
}

func numberSchema(*verb.Argument) object { return object{"type": []string{"number", "string"}} }

func unitsSchema(*verb.Argument) object {
	return object{"type": "object", "additionalProperties": object{"enum": verb.UnitNames()}}
}

func wordSchema(argument *verb.Argument) object { return jsonschema.Word(argument.Words) }

func wordsSchema(argument *verb.Argument) object {
	return orExpression(jsonschema.Words(argument.Words))
}

func fieldsSchema(*verb.Argument) object { return orExpression(jsonschema.Words(verb.FieldNames())) }

func rightsSchema(*verb.Argument) object { return jsonschema.Words(verb.AccessNames()) }

func rolesSchema(*verb.Argument) object { return orExpression(jsonschema.Pair(jsonschema.Scalar())) }

func contentSchema(*verb.Argument) object {
	return object{"anyOf": []any{jsonschema.Ref("data"), jsonschema.Scalar()}}
}

func remoteSchema(*verb.Argument) object {
	return object{"anyOf": []any{jsonschema.Scalar(), object{
		"type": "object", "required": []string{"addr", "rkey"}, "additionalProperties": false,
		"properties": object{
			"addr": jsonschema.Ref("integer"), "rkey": jsonschema.Ref("integer"), "length": jsonschema.Ref("size"),
		},
	}}}
}

func mappingSchema(*verb.Argument) object { return object{"type": []string{"object", "string"}} }

// LayoutSchema is a list of integers in bytes: their values, or their names.
func LayoutSchema(*verb.Argument) jsonschema.Object {
	properties := object{}
	for _, form := range FieldForms() {
		properties[form.Name] = jsonschema.Documented(jsonschema.Scalar(), form.Doc)
	}
	return jsonschema.ListOf(object{
		"type": "object", "minProperties": 1, "maxProperties": 1, "properties": properties,
		"additionalProperties": false,
	})
}

func sizesSchema(*verb.Argument) object {
	size := jsonschema.Ref("size")
	return object{"anyOf": []any{size, object{"type": "string"}, jsonschema.ListOf(size), object{
		"type": "object", "required": []string{powersKey}, "additionalProperties": false,
		"properties": object{powersKey: jsonschema.Pair(size)},
	}}}
}

func countersSchema(*verb.Argument) object {
	return object{"anyOf": []any{jsonschema.Expression(),
		object{"type": "object", "minProperties": 1, "additionalProperties": object{
			"type": "object", "required": []string{deltaKey}, "additionalProperties": false,
			"properties": object{deltaKey: jsonschema.Ref("match_integer")},
		}}}}
}

// optionSchema is a mapping with arguments of its own as keys.
func optionSchema(argument *verb.Argument) object {
	properties, required := object{}, []string{}
	for i := range argument.Fields {
		field := &argument.Fields[i]
		properties[field.Name] = jsonschema.Documented(Schema(field), field.Doc)
		if field.Required {
			required = append(required, field.Name)
		}
	}
	schema := object{"type": []string{"object", "string"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func optionListSchema(argument *verb.Argument) object {
	return object{"anyOf": []any{
		jsonschema.Expression(), object{"type": "array", "minItems": 1, "items": optionSchema(argument)},
	}}
}
