package verb

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestFieldsInEachOrder(t *testing.T) {
	const value = 0x0102030405060708
	native := binary.NativeEndian.AppendUint64(nil, value)
	for name, test := range map[string]struct {
		field Field
		want  []byte
	}{
		"a byte":         {Field{Bytes: 1, Order: binary.BigEndian}, []byte{8}},
		"16 bits":        {Field{Bytes: 2, Order: binary.BigEndian}, []byte{7, 8}},
		"32 bits":        {Field{Bytes: 4, Order: binary.BigEndian}, []byte{5, 6, 7, 8}},
		"64 bits":        {Field{Bytes: 8, Order: binary.BigEndian}, []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		"16, low first":  {Field{Bytes: 2, Order: binary.LittleEndian}, []byte{8, 7}},
		"32, low first":  {Field{Bytes: 4, Order: binary.LittleEndian}, []byte{8, 7, 6, 5}},
		"64, low first":  {Field{Bytes: 8, Order: binary.LittleEndian}, []byte{8, 7, 6, 5, 4, 3, 2, 1}},
		"64 of the host": {Field{Bytes: 8, Order: binary.NativeEndian}, native},
		"32 of the host": {
			Field{Bytes: 4, Order: binary.NativeEndian}, binary.NativeEndian.AppendUint32(nil, 0x05060708),
		},
		"16 of the host": {Field{Bytes: 2, Order: binary.NativeEndian}, binary.NativeEndian.AppendUint16(nil, 0x0708)},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.field.Append([]byte{0xee}, value)
			if !bytes.Equal(got, append([]byte{0xee}, test.want...)) {
				t.Errorf("written: % x, want ee % x", got, test.want)
			}
			wanted := uint64(value)
			if test.field.Bytes < 8 {
				wanted &= 1<<(8*test.field.Bytes) - 1
			}
			if back := test.field.read(append(test.want, 0xee)); back != wanted {
				t.Errorf("read: %#x, want %#x", back, wanted)
			}
		})
	}
}
