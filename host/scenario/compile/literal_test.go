package compile

import (
	"math"
	"testing"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

func TestLiterals(t *testing.T) {
	decoder := newDecoder(nil, Options{}, &diag.List{})
	for name, test := range map[string]struct {
		kind verb.Type
		text string
		want any
		code diag.Code // of a refusal
	}{
		"decimal":            {verb.Integer, "7471", 7471, ""},
		"negative":           {verb.Integer, "-1", -1, ""},
		"hexadecimal":        {verb.Integer, "0x1f", 31, ""},
		"octal":              {verb.Integer, "0o17", 15, ""},
		"binary":             {verb.Integer, "0b101", 5, ""},
		"underscores":        {verb.Integer, "1_000_000", 1000000, ""},
		"64 bits":            {verb.Integer, "0xffffffffffffffff", uint64(math.MaxUint64), ""},
		"bits":               {verb.Unsigned, "0xffffffffffffffff", uint64(math.MaxUint64), ""},
		"bits of a sign":     {verb.Unsigned, "-1", uint64(math.MaxUint64), ""},
		"small, of 64 bits":  {verb.Unsigned, "7", uint64(7), ""},
		"beyond 64 bits":     {verb.Unsigned, "0x10000000000000000", nil, diag.WrongType},
		"size of 64 bits":    {verb.Size, "0xffffffffffffffff", nil, diag.OutOfRange},
		"leading zero":       {verb.Integer, "010", nil, diag.WrongType},
		"fraction":           {verb.Integer, "1.5", nil, diag.WrongType},
		"too large":          {verb.Integer, "0x1ffffffffffffffff", nil, diag.WrongType},
		"empty":              {verb.Integer, "", nil, diag.WrongType},
		"word":               {verb.Integer, "ten", nil, diag.WrongType},
		"bytes":              {verb.Size, "100", 100, ""},
		"B":                  {verb.Size, "100B", 100, ""},
		"KiB":                {verb.Size, "4KiB", 4096, ""},
		"space":              {verb.Size, "4 KiB", 4096, ""},
		"kB":                 {verb.Size, "4kB", 4000, ""},
		"half":               {verb.Size, "1.5MiB", 3 << 19, ""},
		"GiB":                {verb.Size, "1GiB", 1 << 30, ""},
		"no whole bytes":     {verb.Size, "1.3B", nil, diag.WrongUnit},
		"k alone":            {verb.Size, "4k", nil, diag.WrongUnit},
		"kilobits":           {verb.Size, "4Kbit", nil, diag.WrongUnit},
		"negative size":      {verb.Size, "-1", nil, diag.OutOfRange},
		"immense":            {verb.Size, "99999999999TiB", nil, diag.OutOfRange},
		"milliseconds":       {verb.Duration, "250ms", 250 * time.Millisecond, ""},
		"compound":           {verb.Duration, "1m30s", 90 * time.Second, ""},
		"zero":               {verb.Duration, "0", time.Duration(0), ""},
		"no unit":            {verb.Duration, "5", nil, diag.WrongUnit},
		"seconds in words":   {verb.Duration, "5 sec", nil, diag.WrongUnit},
		"no duration at all": {verb.Duration, "soon", nil, diag.WrongType},
		"true":               {verb.Boolean, "true", true, ""},
		"false":              {verb.Boolean, "false", false, ""},
		"on":                 {verb.Boolean, "on", nil, diag.WrongType},
		"True":               {verb.Boolean, "True", nil, diag.WrongType},
		"status number":      {verb.Status, "28", 28, ""},
		"status errno":       {verb.Status, "ECONNREFUSED", -111, ""},
		"status reason":      {verb.Status, "CONSUMER_DEFINED", 28, ""},
		"status unknown":     {verb.Status, "CONSUMER", nil, diag.NotOneOf},
		"any address":        {verb.Address, "any", "any", ""},
		"IPv6":               {verb.Address, "2001:db8::1", "2001:db8::1", ""},
		"no address":         {verb.Address, "localhost", nil, diag.WrongType},
	} {
		t.Run(name, func(t *testing.T) {
			argument := &verb.Argument{Name: "x", Type: test.kind}
			got, bad := decoder.parse(argument, syntax.New(nil, test.text))
			if test.code == "" {
				if bad != nil || got != test.want {
					t.Errorf("got %v, %v", got, bad)
				}
				return
			}
			if bad == nil || bad.Code != test.code {
				t.Errorf("got %v, %+v, want %s", got, bad, test.code)
			}
		})
	}
}

func TestFromExpression(t *testing.T) {
	decoder := newDecoder(nil, Options{}, &diag.List{})
	for name, test := range map[string]struct {
		argument verb.Argument
		value    any
		want     any
		code     diag.Code
	}{
		"integer":           {verb.Argument{Type: verb.Integer}, 3, 3, ""},
		"whole fraction":    {verb.Argument{Type: verb.Integer}, 5.0, 5, ""},
		"fraction":          {verb.Argument{Type: verb.Integer}, 2.5, nil, diag.WrongType},
		"bound":             {verb.Argument{Type: verb.Integer, Max: 7}, 8, nil, diag.OutOfRange},
		"text of integer":   {verb.Argument{Type: verb.Text}, 8, "8", ""},
		"duration":          {verb.Argument{Type: verb.Duration}, time.Second, time.Second, ""},
		"duration in text":  {verb.Argument{Type: verb.Duration}, "2s", 2 * time.Second, ""},
		"integer, no unit":  {verb.Argument{Type: verb.Duration}, 2, nil, diag.WrongType},
		"word":              {verb.Argument{Type: verb.Word, Words: []string{"send"}}, "send", "send", ""},
		"other word":        {verb.Argument{Type: verb.Word, Words: []string{"send"}}, "recv", nil, diag.NotOneOf},
		"nothing":           {verb.Argument{Type: verb.Boolean}, nil, nil, diag.WrongType},
		"status by name":    {verb.Argument{Type: verb.Status}, "ETIMEDOUT", -110, ""},
		"endpoint, integer": {verb.Argument{Type: verb.Endpoint}, 3, nil, diag.WrongType},
	} {
		t.Run(name, func(t *testing.T) {
			got, bad := decoder.convert(&test.argument, test.value)
			if test.code == "" && (bad != nil || got != test.want) {
				t.Errorf("got %v, %v", got, bad)
			}
			if test.code != "" && (bad == nil || bad.Code != test.code) {
				t.Errorf("got %v, %v, want %s", got, bad, test.code)
			}
		})
	}
}

func TestOutOfRangeWords(t *testing.T) {
	for want, argument := range map[string]verb.Argument{
		"9 is out of range: 0 to 7":      {Type: verb.Integer, Max: 7},
		"9 is out of range: at least 10": {Type: verb.Integer, Min: 10, Max: unbounded},
		"9 is out of range: at most 8":   {Type: verb.Integer, Min: -unbounded, Max: 8},
		"9 is out of range: 16 to 4KiB":  {Type: verb.Size, Min: 16, Max: 4096},
	} {
		if bad := check(&argument, 9); bad == nil || bad.Message != want {
			t.Errorf("got %v, want %s", bad, want)
		}
	}
}
