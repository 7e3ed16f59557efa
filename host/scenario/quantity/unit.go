package quantity

import (
	"slices"
	"strings"
)

// kind is what a unit is of.
type kind int

const (
	ofTime kind = iota
	ofSize
	ofRate
)

// unit is a row of the units that scenarios know.
type unit struct {
	kind      kind
	name, doc string
	// factor is the unit in bytes, or bits a second; times are Go's.
	factor float64
	// also is another way to write it.
	also string
}

// units are in their order, those of a kind and series from the smallest.
var units = []unit{
	{ofTime, "ns", "nanosecond", 0, ""},
	{ofTime, "us", "microsecond, also written with a µ", 0, ""},
	{ofTime, "ms", "millisecond", 0, ""},
	{ofTime, "s", "second", 0, ""},
	{ofTime, "m", "minute", 0, ""},
	{ofTime, "h", "hour", 0, ""},
	{ofSize, "B", "byte; a number alone is as much", 1, ""},
	{ofSize, "KiB", "1024 bytes", 1 << 10, ""},
	{ofSize, "MiB", "1024 KiB", 1 << 20, ""},
	{ofSize, "GiB", "1024 MiB", 1 << 30, ""},
	{ofSize, "TiB", "1024 GiB", 1 << 40, ""},
	{ofSize, "kB", "1000 bytes, also written KB", 1e3, "KB"},
	{ofSize, "MB", "1000 kB", 1e6, ""},
	{ofSize, "GB", "1000 MB", 1e9, ""},
	{ofSize, "TB", "1000 GB", 1e12, ""},
	{ofRate, "bit/s", "bit a second", 1, ""},
	{ofRate, "kbit/s", "1000 bit/s", 1e3, ""},
	{ofRate, "Mbit/s", "1000 kbit/s", 1e6, ""},
	{ofRate, "Gbit/s", "1000 Mbit/s", 1e9, ""},
	{ofRate, "Tbit/s", "1000 Gbit/s", 1e12, ""},
	{ofRate, "B/s", "8 bit/s", 8, ""},
	{ofRate, "kB/s", "1000 B/s", 8e3, ""},
	{ofRate, "MB/s", "1000 kB/s", 8e6, ""},
	{ofRate, "GB/s", "1000 MB/s", 8e9, ""},
	{ofRate, "KiB/s", "1024 B/s", 8 << 10, ""},
	{ofRate, "MiB/s", "1024 KiB/s", 8 << 20, ""},
	{ofRate, "GiB/s", "1024 MiB/s", 8 << 30, ""},
}

// Unit is a unit with what it stands for.
type Unit struct{ Name, Doc string }

// Units lists the units of times and sizes, which stand in expressions, too.
func Units() []Unit { return append(of(ofTime), of(ofSize)...) }

// RateUnits lists those of rates.
func RateUnits() []Unit { return of(ofRate) }

func of(k kind) []Unit {
	var list []Unit
	for _, each := range units {
		if each.kind == k {
			list = append(list, Unit{each.name, each.doc})
		}
	}
	return list
}

// Names are those of units.
func Names(list []Unit) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}

// factorOf is what a unit stands for; 0 where none of the kind is called so.
func factorOf(k kind, name string) float64 {
	i := slices.IndexFunc(units, func(u unit) bool { return u.kind == k && (u.name == name || u.also == name && name != "") })
	if i < 0 {
		return 0
	}
	return units[i].factor
}

// thereAre is the hint with the units of a kind.
func thereAre(k kind) string { return "there are " + strings.Join(Names(of(k)), ", ") }
