package quantity

import (
	"strings"
	"testing"
	"time"

	"rdmarun/host/scenario/diag"
)

func TestTimesAreWrittenAsPeopleWriteThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", 26207: "26.207us", 655360 * time.Microsecond: "655.36ms", 1500 * time.Millisecond: "1.5s",
		-time.Second: "-1s",
		time.Minute:  "1m", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", time.Hour: "1h",
		90 * time.Minute: "1h30m",
		24 * time.Hour:   "24h", time.Hour + 5*time.Second: "1h0m5s", 20 * time.Hour: "20h",
	} {
		text := Time(d)
		if text != want {
			t.Errorf("%d ns: %q, want %q", d, text, want)
		}
		if back, bad := ParseTime(text); bad != nil || back != d {
			t.Errorf("%q reads as %v, %v", text, back, bad)
		}
	}
}

func TestSizesAreReadAsTheyAreWritten(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1023: "1023", 1024: "1KiB", 1536: "1536", 3 << 19: "1536KiB", 8 << 20: "8MiB", 5 << 40: "5TiB",
	} {
		text := Size(n)
		if text != want {
			t.Errorf("%d: %q, want %q", n, text, want)
		}
		if !HasUnit(text) {
			continue // a number alone, for the parser of numbers
		}
		if back, bad := ParseSize(text); bad != nil || int64(back) != n {
			t.Errorf("%q reads as %v, %v", text, back, bad)
		}
	}
}

func TestUnknownUnits(t *testing.T) {
	for text, want := range map[string]struct {
		code diag.Code
		hint string
	}{
		"5sec": {diag.WrongUnit, "seconds are written 5s"}, "5Min": {diag.WrongUnit, "5m"},
		"7usec": {diag.WrongUnit, "7us"},
		"5":     {diag.WrongUnit, "5s"}, "5fortnights": {diag.WrongUnit, "there are ns"},
		"soon": {diag.WrongType, "250ms"},
	} {
		if d, bad := ParseTime(text); bad == nil || bad.Code != want.code || !strings.Contains(bad.Hint, want.hint) {
			t.Errorf("time %q: %v, %+v", text, d, bad)
		}
	}
	for text, want := range map[string]struct {
		code diag.Code
		hint string
	}{
		"4k": {diag.WrongUnit, "1KiB"}, "4mib": {diag.WrongUnit, "1MiB"}, "4bytes": {diag.WrongUnit, "with B"},
		"4Q":   {diag.WrongUnit, "there are B"},
		"1.3B": {diag.WrongUnit, ""}, "99999999999TiB": {diag.OutOfRange, ""}, "much": {diag.WrongType, "4KiB"},
	} {
		if n, bad := ParseSize(text); bad == nil || bad.Code != want.code || !strings.Contains(bad.Hint, want.hint) {
			t.Errorf("size %q: %v, %+v", text, n, bad)
		}
	}
}

// TestRates: what the table of units has is what is read, and what is written is read back.
func TestRates(t *testing.T) {
	for _, unit := range RateUnits() {
		bits, bad := ParseRate("3" + unit.Name)
		if bad != nil {
			t.Errorf("%s: %v", unit.Name, bad)
			continue
		}
		if back, bad := ParseRate(Rate(bits)); bad != nil || back != bits {
			t.Errorf("3%s is written %s, which is %g, want %g", unit.Name, Rate(bits), back, bits)
		}
	}
	for text, want := range map[string]float64{
		"100Gbit/s": 1e11, "40 MB/s": 3.2e8, "1KiB/s": 8192, "0bit/s": 0, "1.5kbit/s": 1500,
	} {
		if got, bad := ParseRate(text); bad != nil || got != want {
			t.Errorf("%s is %g, %v", text, got, bad)
		}
	}
	for text, hint := range map[string]string{
		"2000/s": "of type int", "1Gb/s": "there are bit/s, kbit/s", "100": "100Gbit/s", "-1bit/s": "",
		"fast": "100Gbit/s", "1KB/s": "kB/s",
	} {
		if got, bad := ParseRate(text); bad == nil || !strings.Contains(bad.Hint, hint) {
			t.Errorf("%q: %g, %+v", text, got, bad)
		}
	}
	for bits, want := range map[float64]string{
		0: "0bit/s", 999: "999bit/s", 1e3: "1kbit/s", 2.5e9: "2.5Gbit/s", 1e16: "10000Tbit/s",
	} {
		if got := Rate(bits); got != want {
			t.Errorf("%g: %s, want %s", bits, got, want)
		}
	}
}

func TestBytesHaveOneForm(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 64: "64B", 1500: "1500B", 4096: "4KiB", 65537: "65537B", 1 << 18: "256KiB", 3 << 20: "3MiB",
		16 << 30: "16GiB",
	} {
		text := Bytes(n)
		if text != want {
			t.Errorf("%d is %s, and not %s", n, text, want)
		}
		if back, problem := ParseSize(text); problem != nil || int64(back) != n {
			t.Errorf("%s is read as %d, %v", text, back, problem)
		}
	}
	for _, test := range []struct {
		n    int64
		si   bool
		want string
	}{
		{4096, false, "4KiB"}, {9999, false, "9999B"}, {100000, false, "97.7KiB"}, {1234567, false, "1206KiB"},
		{65536, true, "65.5kB"}, {1000, true, "1kB"}, {64, true, "64B"},
	} {
		if text := ShortBytes(test.n, test.si); text != test.want {
			t.Errorf("%d (SI: %v) is %s, and not %s", test.n, test.si, text, test.want)
		}
	}
}
