package policy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cFolders are those of the C core; each is looked at by itself.
var cFolders = []string{"rdmacore", "rdmacore/ctest", "rdmacore/preload"}

// A cRoom of the C core is X.h with X.c.
type cRoom struct {
	gives    map[string]bool // functions that others may call
	names    map[string]bool // every name in it, but for what it only declares
	includes map[string]bool // other rooms' headers
}

var (
	cComment     = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cInclude     = regexp.MustCompile(`(?m)^#include "(?:\.\./)?(\w+)\.h"`)
	cDeclaration = regexp.MustCompile(`(?m)^[a-z_][\w \t*]*?\b\w+\([^{};]*\);$`)
	cFunction    = regexp.MustCompile(`(?m)^[a-z_][\w \t*]*?\b(\w+)\([^;{}]*\)\n\{`)
	cTag         = regexp.MustCompile(`\b(?:struct|enum|union) \w+`) // functions have names of structs, too
	cName        = regexp.MustCompile(`\b[a-z]\w*_\w+\b`)
)

// The C core has no circles: a room uses only what is below it.  The compiler would not mind, but who reads one
// room of a circle has to read them all.
func TestCRoomsHaveNoCircles(t *testing.T) {
	for _, folder := range cFolders {
		rooms := cRooms(t, folder)
		if len(rooms) < 5 {
			t.Fatalf("%s: only %d rooms were found", folder, len(rooms))
		}
		for _, circle := range circles(includesOf(rooms)) {
			t.Errorf("%s: headers include one another in a circle: %s", folder, strings.Join(circle, " -> "))
		}
		for _, circle := range circles(callsOf(rooms)) {
			t.Errorf("%s: functions call one another in a circle: %s", folder, strings.Join(circle, " -> "))
		}
	}
}

func TestCirclesAreFound(t *testing.T) {
	house := map[string][]string{"top": {"left", "right"}, "left": {"low"}, "right": {"low"}, "low": nil}
	if found := circles(house); len(found) != 0 {
		t.Errorf("circles of a house that has none: %v", found)
	}
	house["low"] = []string{"right"}
	want := []string{"low", "right", "low"}
	if found := circles(house); len(found) != 1 || !slices.Equal(found[0], want) {
		t.Errorf("circles: %v, want %v alone", found, want)
	}
}

func cRooms(t *testing.T, folder string) map[string]*cRoom {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.[ch]"))
	if err != nil {
		t.Fatal(err)
	}
	rooms := map[string]*cRoom{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if rooms[name] == nil {
			rooms[name] = &cRoom{gives: map[string]bool{}, names: map[string]bool{}, includes: map[string]bool{}}
		}
		rooms[name].read(cComment.ReplaceAllString(string(data), ""))
	}
	return rooms
}

func (r *cRoom) read(text string) {
	for _, match := range cInclude.FindAllStringSubmatch(text, -1) {
		r.includes[match[1]] = true
	}
	for _, match := range cFunction.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(match[0], "static ") || strings.HasPrefix(match[0], "static inline ") {
			r.gives[match[1]] = true
		}
	}
	text = cTag.ReplaceAllString(cDeclaration.ReplaceAllString(text, ""), "")
	for _, name := range cName.FindAllString(text, -1) {
		r.names[name] = true
	}
}

func includesOf(rooms map[string]*cRoom) map[string][]string {
	arrows := map[string][]string{}
	for name, room := range rooms {
		arrows[name] = slices.Sorted(maps.Keys(room.includes))
	}
	return arrows
}

func callsOf(rooms map[string]*cRoom) map[string][]string {
	givers := map[string]string{}
	for name, room := range rooms {
		for function := range room.gives {
			givers[function] = name
		}
	}
	arrows := map[string][]string{}
	for name, room := range rooms {
		below := map[string]bool{}
		for used := range room.names {
			if giver, ok := givers[used]; ok && !room.gives[used] {
				below[giver] = true
			}
		}
		arrows[name] = slices.Sorted(maps.Keys(below))
	}
	return arrows
}

// circles are ways from a room back to itself; without any, there are none.
func circles(arrows map[string][]string) (found [][]string) {
	done := map[string]bool{}
	var walk func(name string, way []string)
	walk = func(name string, way []string) {
		if at := slices.Index(way, name); at >= 0 {
			found = append(found, append(slices.Clone(way[at:]), name))
			return
		}
		if done[name] {
			return
		}
		for _, other := range arrows[name] {
			if other != name {
				walk(other, append(slices.Clone(way), name))
			}
		}
		done[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		walk(name, nil)
	}
	return found
}
