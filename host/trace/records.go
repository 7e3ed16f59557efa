package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// Records writes each call as a line of JSON.
type Records struct {
	out   *bufio.Writer
	sites bool
	err   error
}

// NewRecords writes to out; with sites also where the program made each call.
func NewRecords(out io.Writer, sites bool) *Records {
	return &Records{out: bufio.NewWriterSize(out, 1<<16), sites: sites}
}

// object is a JSON object with members in their order.
type object []Field

func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, field := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, _ := json.Marshal(field.Name) // a string
		value, err := json.Marshal(plain(field.Value))
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Take writes a call.
func (r *Records) Take(call *Call) {
	line := object{{"time", call.End.Seconds()}, {"pid", call.Process}, {"tid", call.Thread}}
	if call.Note != "" {
		line = append(line, Field{"note", call.Note})
	} else {
		line = append(
			line, Field{"call", call.Name}, Field{"group", call.Group}, Field{"args", members(call.Arguments)},
		)
		line = append(line, outcome(call)...)
		if r.sites && call.Site != (Site{}) {
			line = append(line, Field{"site", Text(call.Site.Location().String())})
		}
	}
	data, err := json.Marshal(line)
	if err == nil {
		_, err = r.out.Write(append(data, '\n'))
	}
	if r.err == nil {
		r.err = err
	}
}

// outcome is what came of a call.
func outcome(call *Call) (line object) {
	if call.Unfinished {
		return object{{"unfinished", true}}
	}
	line = object{{"result", call.Result}}
	if call.Failed() {
		line = append(line, Field{"errno", ErrnoName(int(call.Errno))})
	}
	if len(call.Results) > 0 {
		line = append(line, Field{"results", members(call.Results)})
	}
	if call.Polls > 0 {
		line = append(line, Field{"empty_polls", call.Polls})
	}
	return append(line, Field{"duration", call.Duration().Seconds()})
}

// Flush writes what is buffered.
func (r *Records) Flush(bool) error {
	if r.err != nil {
		return r.err
	}
	return r.out.Flush()
}

// members gives values without a name the name of what they are.
func members(fields []Field) object {
	named := object{}
	for _, field := range fields {
		if field.Name == "" {
			field.Name = nameOf(field.Value)
		}
		named = append(named, field)
	}
	return named
}

// nameOf is the kind of an object, or what a list or a struct of a call is about.
func nameOf(value any) string {
	switch v := value.(type) {
	case Word:
		for i, c := range v {
			if c == '#' {
				return string(v[:i])
			}
		}
	case List:
		return "list"
	}
	return "attr"
}

// plain is a value as JSON has it.
func plain(value any) any {
	switch v := value.(type) {
	case Word:
		return string(v)
	case Text:
		return string(bytes.ToValidUTF8([]byte(v), []byte("\ufffd")))
	case Bytes:
		return quoted(v.Data)
	case hex:
		return uint64(v)
	case explained:
		return v.Name
	case Struct:
		return members(v)
	case List:
		list := make([]any, 0, len(v))
		for _, each := range v {
			list = append(list, plain(each))
		}
		return list
	case more:
		return object{{"more", uint64(v)}}
	}
	return value
}
