package verb

import (
	"bytes"
	"context"
	"fmt"

	"rdmarun/host/scenario/lab"
)

// bufferVerbs write, read and compare buffers.
func bufferVerbs() []Verb {
	buffer := Argument{Name: "buffer", Type: Buffer, Required: true, Doc: "the buffer"}
	offset := Argument{Name: "offset", Type: Size, Default: 0, Doc: "where in the buffer"}
	length := Argument{Name: "length", Type: Size, Doc: "how many bytes; without it, to the end of the buffer"}
	optional, compared := buffer, "equals, all or counters"
	optional.Required = false
	return []Verb{
		{
			Name: "fill", Run: fill, Yields: Nothing,
			Doc:       "Write to a buffer: text, hex and byte are repeated to the end of the range, fields and repeat/times stand once at its beginning.",
			Arguments: []Argument{buffer, offset, length, {Name: "data", Type: Data, Required: true, Inline: true, Doc: "one of the forms of data"}},
		},
		{
			Name: "decode", Run: decode, Yields: Value,
			Doc:       "Read unsigned integers from a buffer, in network byte order unless their names say otherwise; `as` names the record.",
			Arguments: []Argument{buffer, offset, {Name: "fields", Type: Layout, Required: true, Doc: "the integers, each with a name: [{u64: addr}, {u32: rkey}, {host64: old}]"}},
		},
		{
			Name: "check", Run: check, Check: checkCheck, Needs: checkNeeds,
			Doc: "Compare a buffer: with another buffer, with data, or every byte with one value.  Or compare by how much counters of the role's device have grown since the case began.",
			Arguments: []Argument{optional, offset, length,
				{Name: "equals", Type: Content, Group: compared, Doc: "a buffer (ROLE.NAME of another role) or data: byte is every byte of the range; other data is compared with as many bytes as it has, or, with length, repeated up to that as fill does"},
				{Name: "all", Type: Integer, Max: 255, Group: compared, Doc: "the value of every byte"},
				{Name: "counters", Type: Counters, Group: compared, Doc: "of the port and the device, as the kernel names them: {port_rcv_errors: {delta: 0}, packet_seq_err: {delta: {le: 10}}}"}},
		},
	}
}

func fill(_ context.Context, call *Call) (Outcome, error) {
	s, err := stretchOf(call)
	if err != nil {
		return Outcome{}, err
	}
	data, room := call.Data("data").Filling(), s.bytes()
	if !data.Fits(len(room)) {
		return Outcome{}, &lab.Failure{
			What:     fmt.Sprintf("the data does not fit into buffer %q", s.buffer.Name),
			Expected: fmt.Sprintf("%d bytes at most", len(room)),
			Got:      fmt.Sprintf("%d bytes", len(data.Bytes)),
		}
	}
	data.Write(room)
	return Outcome{}, nil
}

func decode(_ context.Context, call *Call) (Outcome, error) {
	s, err := stretchOf(call)
	if err != nil {
		return Outcome{}, err
	}
	layout, _ := call.argument("fields").(FieldLayout)
	if layout.Size() > s.length {
		return Outcome{}, &lab.Failure{
			What:     fmt.Sprintf("the fields reach beyond buffer %q", s.buffer.Name),
			Expected: fmt.Sprintf("%d bytes at most", s.length),
			Got:      fmt.Sprintf("%d bytes", layout.Size()),
		}
	}
	record := make(map[string]any, len(layout))
	rest := s.bytes()
	for _, field := range layout {
		if value := field.Read(rest); field.Bytes == 8 {
			record[field.Name] = value
		} else {
			record[field.Name] = int(value)
		}
		rest = rest[field.Bytes:]
	}
	return Outcome{Record: record, Summary: func() string { return fmt.Sprint(layout.describe(record)) }}, nil
}

// describe is the record in the layout's order.
func (l FieldLayout) describe(record map[string]any) string {
	var text bytes.Buffer
	for i, field := range l {
		if i > 0 {
			text.WriteByte(' ')
		}
		fmt.Fprintf(&text, "%s=%#x", field.Name, record[field.Name])
	}
	return text.String()
}

func check(_ context.Context, call *Call) (Outcome, error) {
	if checks, ok := call.argument("counters").(CounterChecks); ok {
		return Outcome{}, checkCounters(call.Role, checks)
	}
	s, err := stretchOf(call)
	if err != nil {
		return Outcome{}, err
	}
	got := s.bytes()
	if call.Has("all") {
		return Outcome{}, checkAll(s, got, byte(call.Integer("all")))
	}
	data, name := call.Data("equals"), "the data"
	want := data.Bytes
	other, isBuffer := call.argument("equals").(BufferName)
	switch {
	case isBuffer:
		buffer, err := call.Buffer("equals")
		if err != nil {
			return Outcome{}, err
		}
		want, name = buffer.Bytes(), other.String()
	case data.Every || call.Has("length"):
		want = data.Filling().Over(len(got))
	case !call.Has("length"):
		got = got[:min(len(got), len(want))] // data says itself how much it speaks of
	}
	if call.Has("length") {
		want = want[:min(len(want), len(got))]
	}
	return Outcome{}, compare(s, got, want, name)
}

func checkAll(s stretch, got []byte, value byte) error {
	for i, b := range got {
		if b != value {
			return &lab.Failure{
				What:     fmt.Sprintf("byte %d of buffer %q differs", s.offset+i, s.buffer.Name),
				Expected: fmt.Sprintf("0x%02x in every byte", value),
				Got:      dump(got, i),
			}
		}
	}
	return nil
}

func compare(s stretch, got, want []byte, name string) error {
	if len(got) != len(want) {
		return &lab.Failure{
			What:     fmt.Sprintf("buffer %q and %s differ in length", s.buffer.Name, name),
			Expected: fmt.Sprintf("%d bytes", len(want)),
			Got:      fmt.Sprintf("%d bytes", len(got)),
			Hint:     "`length` compares a part",
		}
	}
	if bytes.Equal(got, want) {
		return nil
	}
	first, count := -1, 0
	for i := range got {
		if got[i] != want[i] {
			count++
			if first < 0 {
				first = i
			}
		}
	}
	return &lab.Failure{
		What:     fmt.Sprintf("%d of %d bytes of buffer %q differ from %s, the first at %d", count, len(got), s.buffer.Name, name, s.offset+first),
		Expected: dump(want, first),
		Got:      dump(got, first),
	}
}

// dump shows the bytes around a place, in hex and as text.
func dump(b []byte, at int) string {
	from := max(0, at-4)
	part := b[from:min(len(b), from+16)]
	text := bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, part)
	return fmt.Sprintf("[%d] % x  |%s|", from, part, text)
}
