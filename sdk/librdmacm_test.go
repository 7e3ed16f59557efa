package sdk

import (
	"debug/elf"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// librariesFolders are where Debian and others have librdmacm and libibverbs.
var librariesFolders = []string{"/usr/lib/*-linux-gnu*", "/usr/lib64", "/usr/lib"}

// exported lists the functions of a library of this machine; it skips the test where it is not installed.  Functions
// for drivers alone are in versions named PRIVATE.
func exported(t *testing.T, library string) []string {
	t.Helper()
	for _, folder := range librariesFolders {
		found, _ := filepath.Glob(filepath.Join(folder, library)) // the pattern is right
		if len(found) == 0 {
			continue
		}
		file, err := elf.Open(found[0])
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		symbols, err := file.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, symbol := range symbols {
			if symbol.Section != elf.SHN_UNDEF && elf.ST_TYPE(symbol.Info) == elf.STT_FUNC &&
				!strings.Contains(symbol.Version, "PRIVATE") {
				names = append(names, symbol.Name)
			}
		}
		return names
	}
	t.Skip(library, "is not installed")
	return nil
}

// TestLibrdmacmHasTheFunctions: the library for guests defines each function of librdmacm and libibverbs, or the page
// that a link error names says why not.
func TestLibrdmacmHasTheFunctions(t *testing.T) {
	page, err := os.ReadFile("../docs/librdmacm.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## Functions that guests do not have")
	if !found {
		t.Fatal("the page has no section on functions that guests do not have")
	}
	var missing []string
	for _, match := range regexp.MustCompile("`([a-z_*0-9]+)`").FindAllStringSubmatch(section, -1) {
		missing = append(missing, match[1])
	}
	var source strings.Builder
	files, err := filepath.Glob("librdmacm/*.c")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	defined := make(map[string]bool)
	for _, match := range regexp.MustCompile(`(?m)^[a-z_].*?\b(_?[a-z][a-z0-9_]*)\(.*[^;]$`).
		FindAllStringSubmatch(source.String(), -1) {
		defined[match[1]] = true
	}
	for _, library := range []string{"librdmacm.so.1", "libibverbs.so.1"} {
		t.Run(library, func(t *testing.T) {
			for _, name := range exported(t, library) {
				described := false
				for _, pattern := range missing {
					matches, err := path.Match(pattern, name)
					if err != nil {
						t.Fatal(err)
					}
					described = described || matches
				}
				switch {
				case defined[name] && described:
					t.Errorf("the page says that guests have no %s, and they have", name)
				case !defined[name] && !described:
					t.Errorf("guests have no %s, and the page does not say why", name)
				}
			}
		})
	}
}
