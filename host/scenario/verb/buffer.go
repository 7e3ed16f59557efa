package verb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// bufferVerbs write, read and compare buffers.
var bufferVerbs = []Verb{
	act("fill", "",
		"Write to a buffer: text, hex and byte are repeated to the end of the range, fields and repeat/times are "+
			"once at its beginning.", fill),
	ask("decode", "",
		"Read unsigned integers from a buffer, in network byte order unless their names say otherwise; `as` names "+
			"the record.",
		decode),
	act("check", "",
		"Compare a buffer: with another buffer, with data, or every byte with one value.  Or compare by how much "+
			"counters of the role's device have grown since the case began.",
		check),
}

func fill(_ context.Context, _ *Call, args *struct {
	theBuffer
	Offset byteCount           `arg:"offset" default:"0" doc:"where in the buffer"`
	Length optional[byteCount] `arg:"length" doc:"how many bytes; without it, to the end of the buffer"`
	Data   DataValue           `arg:"data,required,inline" doc:"one of the forms of data"`
}) error {
	s, err := spanOf(args.Buffer, args.Offset, args.Length)
	if err != nil {
		return err
	}
	data, room := args.Data.Filling(), s.bytes()
	if !data.Fits(len(room)) {
		return tooLong("the data does not fit into buffer", s.buffer, len(room), len(data.Bytes))
	}
	data.Write(room)
	return nil
}

// tooLong is the failure of data that does not fit into a part of a buffer.
func tooLong(what string, buffer *testbed.Buffer, room, bytes int) error {
	return &testbed.Failure{
		What: fmt.Sprintf("%s %q", what, buffer.Name), Expected: fmt.Sprintf("%d bytes at most", room),
		Got: fmt.Sprintf("%d bytes", bytes),
	}
}

// decoded is the record of a layout: its integers by their names.
type decoded struct {
	layout FieldLayout
	record map[string]any
}

// summary is the record in the layout's order.
func (d decoded) summary() string {
	words := make([]string, len(d.layout))
	for i, field := range d.layout {
		words[i] = fmt.Sprintf("%s=%#x", field.Name, d.record[field.Name])
	}
	return strings.Join(words, " ")
}

// decodeArguments are those of decode.
type decodeArguments struct {
	theBuffer
	Offset byteCount   `arg:"offset" default:"0" doc:"where in the buffer"`
	Fields FieldLayout `arg:"fields,required" doc:"the integers, each with a name: [{u64: addr}, {u32: rkey}, {host64: old}]"`
}

// results are the integers by their names.
func (a *decodeArguments) results() []Result {
	named := make([]Result, len(a.Fields))
	for i, field := range a.Fields {
		named[i] = Result{Name: field.Name, Type: Integer}
		if field.Bytes == 8 {
			named[i].Type = Unsigned
		}
	}
	return named
}

func decode(_ context.Context, call *Call, args *decodeArguments) (decoded, error) {
	s, err := spanOf(args.Buffer, args.Offset, optional[byteCount]{})
	if err != nil {
		return decoded{}, err
	}
	if args.Fields.Size() > s.length {
		return decoded{}, tooLong("the fields reach beyond buffer", s.buffer, s.length, args.Fields.Size())
	}
	record := make(map[string]any, len(args.Fields))
	rest := s.bytes()
	for _, field := range args.Fields {
		if value := field.read(rest); field.Bytes == 8 {
			record[field.Name] = value
		} else {
			record[field.Name] = int(value)
		}
		rest = rest[field.Bytes:]
	}
	call.Outcome.Record = record
	return decoded{args.Fields, record}, nil
}

// span is a part of a buffer.
type span struct {
	buffer         *testbed.Buffer
	offset, length int
}

// spanOf checks that a part lies within its buffer.  Without a length it reaches to the end.
func spanOf(buffer *testbed.Buffer, offset byteCount, length optional[byteCount]) (span, error) {
	s := span{buffer: buffer, offset: int(offset)}
	if s.offset < 0 || s.offset > buffer.Size() {
		return s, &testbed.Failure{
			What:     fmt.Sprintf("offset %d is outside buffer %q", s.offset, buffer.Name),
			Expected: fmt.Sprintf("0 to %d", buffer.Size()), Got: fmt.Sprint(s.offset),
		}
	}
	s.length = buffer.Size() - s.offset
	if !length.Given {
		return s, nil
	}
	if int(length.Value) < 0 || int(length.Value) > s.length {
		return s, &testbed.Failure{
			What:     fmt.Sprintf("length %d does not fit into buffer %q", length.Value, buffer.Name),
			Expected: fmt.Sprintf("%d bytes at most, from offset %d", s.length, s.offset),
			Got:      fmt.Sprint(int(length.Value)),
		}
	}
	s.length = int(length.Value)
	return s, nil
}

func (s span) bytes() []byte { return s.buffer.Bytes()[s.offset : s.offset+s.length] }

// sges is the span as scatter/gather entries; a message without data has none.
func (s span) sges() []rdmacore.SGE {
	if s.length == 0 {
		return nil
	}
	return []rdmacore.SGE{{
		Address: s.buffer.Address(s.offset), Length: uint32(s.length), LKey: uint32(s.buffer.View().LKey),
	}}
}

type checkArguments struct {
	Buffer   optional[*testbed.Buffer] `arg:"buffer" doc:"the buffer"`
	Offset   byteCount                 `arg:"offset" default:"0" doc:"where in the buffer"`
	Length   optional[byteCount]       `arg:"length" doc:"how many bytes; without it, to the end of the buffer"`
	Equals   optional[content]         `arg:"equals" group:"equals, all or counters" doc:"a buffer (ROLE.NAME of another role) or data. byte is compared with every byte of the range, other data with as many bytes as it has. With length, other data is repeated up to that, as fill does"`
	All      optional[uint8]           `arg:"all" group:"equals, all or counters" doc:"the value of every byte"`
	Counters optional[CounterChecks]   `arg:"counters" group:"equals, all or counters" doc:"counters of the port and the device, by the kernel's names: {port_rcv_errors: {delta: 0}, packet_seq_err: {delta: {le: 10}}}"`
}

func (a *checkArguments) needs() string {
	if a.Counters.Given {
		return CanCount
	}
	return ""
}

// check requires a buffer, except to compare counters.
func (a *checkArguments) check() *Refusal {
	beside := func(name string) *Refusal {
		return &Refusal{
			Argument: name, Meaningless: true, Message: "means nothing with counters", Hint: "make two steps of it",
		}
	}
	switch {
	case a.Counters.Given && a.Buffer.Given:
		return beside("buffer")
	case a.Counters.Given && a.Length.Given:
		return beside("length")
	case !a.Counters.Given && !a.Buffer.Given && (a.Equals.Given || a.All.Given):
		return &Refusal{
			Argument: "buffer", Message: "the buffer with the bytes is missing",
			Hint: "buffer: the name of one of the role's",
		}
	}
	return nil
}

func check(_ context.Context, call *Call, args *checkArguments) error {
	if args.Counters.Given {
		return checkCounters(call.Role, args.Counters.Value)
	}
	s, err := spanOf(args.Buffer.Value, args.Offset, args.Length)
	if err != nil {
		return err
	}
	got := s.bytes()
	if args.All.Given {
		return checkAll(s, got, args.All.Value)
	}
	data, name := args.Equals.Value.Data, "the data"
	want := data.Bytes
	switch {
	case args.Equals.Value.Buffer != nil:
		want, name = args.Equals.Value.Buffer.Bytes(), args.Equals.Value.Name.String()
	case data.Every || args.Length.Given:
		want = data.Filling().Over(len(got))
	case !args.Length.Given:
		got = got[:min(len(got), len(want))] // without a length, as many bytes as the data has
	}
	if args.Length.Given {
		want = want[:min(len(want), len(got))]
	}
	return compare(s, got, want, name)
}

func checkCounters(role *testbed.Role, checks CounterChecks) error {
	for _, each := range checks {
		delta, err := role.CounterDelta(each.Name)
		if unknown := (*testbed.Failure)(nil); errors.As(err, &unknown) {
			unknown.Span = each.Span
			if meaning := explain.Counter(each.Name); meaning != "" { // a counter of other devices or links
				unknown.Hint = fmt.Sprintf("%s counts %s; %s", each.Name, meaning, unknown.Hint)
			}
		}
		if err != nil {
			return err
		}
		if ok, want := each.Check(delta); !ok {
			return &testbed.Failure{
				What:     fmt.Sprintf("wrong growth of the counter %s of %s", each.Name, role.Device().Name()),
				Expected: want, Got: fmt.Sprintf("%d since the case began", delta), Span: each.Span,
			}
		}
	}
	return nil
}

func checkAll(s span, got []byte, value byte) error {
	for i, b := range got {
		if b != value {
			return &testbed.Failure{
				What:     fmt.Sprintf("byte %d of buffer %q differs", s.offset+i, s.buffer.Name),
				Expected: fmt.Sprintf("0x%02x in every byte", value), Got: dump(got, i),
			}
		}
	}
	return nil
}

func compare(s span, got, want []byte, name string) error {
	if len(got) != len(want) {
		return &testbed.Failure{
			What:     fmt.Sprintf("buffer %q and %s differ in length", s.buffer.Name, name),
			Expected: fmt.Sprintf("%d bytes", len(want)), Got: fmt.Sprintf("%d bytes", len(got)),
			Hint: "`length` compares a part",
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
	return &testbed.Failure{
		What: fmt.Sprintf(
			"%d of %d bytes of buffer %q differ from %s, the first at %d", count, len(got), s.buffer.Name, name,
			s.offset+first,
		),
		Expected: dump(want, first), Got: dump(got, first),
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
