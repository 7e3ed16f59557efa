package meeting

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Encode writes a value of expressions.  Decode returns an equal value of the same Go type, so that other processes can
// compare and compute with results of steps.
func Encode(value any) (json.RawMessage, error) {
	tree, err := tree(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// tagged is a value with a type that JSON would lose: the only key is its type.
func tagged(kind string, value any) map[string]any { return map[string]any{kind: value} }

func tree(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string:
		return v, nil
	case int:
		return tagged("int", strconv.Itoa(v)), nil
	case uint64:
		return tagged("unsigned", strconv.FormatUint(v, 10)), nil
	case float64:
		return tagged("float", strconv.FormatFloat(v, 'g', -1, 64)), nil
	case time.Duration:
		return tagged("time", strconv.FormatInt(int64(v), 10)), nil
	case []byte:
		return tagged("bytes", base64.StdEncoding.EncodeToString(v)), nil // nil becomes empty
	case []any:
		list := make([]any, len(v))
		for i := range v {
			item, err := tree(v[i])
			if err != nil {
				return nil, err
			}
			list[i] = item
		}
		return list, nil
	case map[string]any:
		record := make(map[string]any, len(v))
		for name := range v {
			member, err := tree(v[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			record[name] = member
		}
		return tagged("record", record), nil
	}
	return nil, fmt.Errorf("a %T cannot be sent to another process", value)
}

// Decode reads what Encode wrote, and nothing else.
func Decode(raw json.RawMessage) (any, error) {
	var untyped any
	if err := json.Unmarshal(raw, &untyped); err != nil {
		return nil, err
	}
	return typed(untyped)
}

func typed(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string:
		return v, nil
	case []any:
		for i := range v {
			item, err := typed(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
		return v, nil
	case map[string]any:
		for kind, inner := range v {
			if len(v) == 1 {
				return ofKind(kind, inner)
			}
		}
	}
	return nil, fmt.Errorf("%.40q is not a value of an expression", fmt.Sprint(value))
}

func ofKind(kind string, inner any) (any, error) {
	if record, is := inner.(map[string]any); is && kind == "record" {
		for name := range record {
			member, err := typed(record[name])
			if err != nil {
				return nil, err
			}
			record[name] = member
		}
		return record, nil
	}
	text, isText := inner.(string)
	if !isText {
		return nil, fmt.Errorf("%.20q has no text", kind)
	}
	switch kind {
	case "int":
		return strconv.Atoi(text)
	case "unsigned":
		return strconv.ParseUint(text, 10, 64)
	case "float":
		return strconv.ParseFloat(text, 64)
	case "time":
		ns, err := strconv.ParseInt(text, 10, 64)
		return time.Duration(ns), err
	case "bytes":
		return base64.StdEncoding.DecodeString(text)
	}
	return nil, fmt.Errorf("%.20q is not a type of a value", kind)
}
