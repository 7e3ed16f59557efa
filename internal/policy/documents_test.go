package policy

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// namesOf is a file with names that are in it: `rdmacore/post.go` (`PostSend`, `PostRecv`).
	namesOf = regexp.MustCompile("`([^`\n]+)`\\s+\\(((?:`\\w+`,?\\s*)+)\\)")
	linked  = regexp.MustCompile(`\]\(([^)#\s]+)[^)\s]*\)`)
	// aPath has a slash, and is no flag, pattern, command, or command's argument.
	aPath = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$`)
)

// isBuilt tells of a path that a fresh checkout has not.
func isBuilt(file string) bool {
	return within(file, "bin") || within(file, "build") || strings.HasSuffix(file, ".wasm")
}

// The documents for people who change the project are right about files: each path in backquotes is there, and the
// functions that are named behind one stand in it.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	for _, document := range []string{"CONTRIBUTING.md", "docs/architecture.md"} {
		text := string(readSource(t, document))
		paths := 0
		for _, match := range quoted.FindAllStringSubmatch(text, -1) {
			file := match[1]
			if !aPath.MatchString(file) || isBuilt(file) {
				continue
			}
			paths++
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s names %s, which is not there", document, file)
			}
		}
		if paths < 20 {
			t.Errorf("%s: %d paths were found in it", document, paths)
		}
		for _, match := range namesOf.FindAllStringSubmatch(text, -1) {
			source, err := os.ReadFile(filepath.Join(root, match[1]))
			if err != nil {
				t.Errorf("%s: %v", document, err)
				continue
			}
			for _, name := range quoted.FindAllStringSubmatch(match[2], -1) {
				if !regexp.MustCompile(`\b` + name[1] + `[[(]`).Match(source) {
					t.Errorf("%s: %s has no %s", document, match[1], name[1])
				}
			}
		}
	}
}

// A link of a document leads to a file.
func TestLinksOfDocuments(t *testing.T) {
	links := 0
	for _, file := range sourceFiles(t) {
		if path.Ext(file) != ".md" {
			continue
		}
		for _, match := range linked.FindAllStringSubmatch(string(readSource(t, file)), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(root, path.Dir(file), match[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", file, match[1])
			}
		}
	}
	if links < 10 {
		t.Errorf("%d links were found", links)
	}
}
