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

// isBuilt reports whether a fresh checkout lacks a path.
func isBuilt(file string) bool {
	return within(file, "bin") || within(file, "build") || strings.HasSuffix(file, ".wasm")
}

// decisionIndex lists the decisions by subject.
const decisionIndex = "docs/decisions/README.md"

// decisionFiles are the decisions without their index.
func decisionFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, file := range sourceFiles(t) {
		if path.Dir(file) == path.Dir(decisionIndex) && file != decisionIndex {
			files = append(files, file)
		}
	}
	if len(files) < 50 {
		t.Fatalf("only %d decisions were found", len(files))
	}
	return files
}

// A decision has a number, a title, three sections and at most 60 lines, and the index has its number and title.
func TestDecisionsHaveOneForm(t *testing.T) {
	const maxLines = 60
	name := regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	form := regexp.MustCompile(
		`(?s)^# (\d{4})\. ([^\n]+)\n\n## Context\n\n.+\n\n## Decision\n\n.+\n\n## Consequences\n\n.+\n$`,
	)
	index := string(readSource(t, decisionIndex))
	numbers := map[string]string{}
	for _, file := range decisionFiles(t) {
		text := string(readSource(t, file))
		number, parts := name.FindStringSubmatch(path.Base(file)), form.FindStringSubmatch(text)
		if number == nil || parts == nil || number[1] != parts[1] {
			t.Errorf(
				"%s: want NNNN-title.md with \"# NNNN. Title\", and the sections Context, Decision and Consequences",
				file,
			)
			continue
		}
		if other := numbers[number[1]]; other != "" {
			t.Errorf("%s and %s have one number", file, other)
		}
		numbers[number[1]] = file
		if lines := strings.Count(text, "\n"); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", file, lines, maxLines)
		}
		if line := "- [" + number[1] + "](" + path.Base(file) + "): " + parts[2] +
			"\n"; strings.Count(index, line) != 1 {
			t.Errorf("%s has no line %q", decisionIndex, line)
		}
	}
}

// The documents for people who change the project are right about files. Each path in backquotes exists, and the
// functions named after it are in it.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	total := 0
	for _, document := range append(decisionFiles(t), "CONTRIBUTING.md", "docs/architecture.md") {
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
		total += paths
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
	if total < 200 {
		t.Errorf("only %d paths were found", total)
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
