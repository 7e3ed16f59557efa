package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/internal/address"
)

// documentPort is the port in documents; a test replaces it with a free one.
const documentPort = "17471"

// documentBlock is a fenced block of a document: its info string, and its text, which may be rewritten.
type documentBlock struct {
	info, text string
	start, end int // of the text
}

// documentBlocks are the fenced blocks of a document.
func documentBlocks(text string) (blocks []documentBlock) {
	fence := regexp.MustCompile("(?m)^```(.*)\n")
	for at := 0; ; {
		open := fence.FindStringSubmatchIndex(text[at:])
		if open == nil {
			return blocks
		}
		start := at + open[1]
		end := strings.Index(text[start:], "```")
		if end < 0 {
			return blocks
		}
		blocks = append(blocks, documentBlock{
			text[at+open[2] : at+open[3]], text[start : start+end], start, start + end,
		})
		at = start + end + len("```\n")
	}
}

// TestDocumentsRun runs what documents show. A block "yaml FILE" is a file. A block "console" has commands behind "$
// ", each with its output. "console background" is a terminal that runs its commands during the blocks after it. A
// line "..." stands for any lines. Numbers that differ from run to run are not compared. With -update the output is
// rewritten.
func TestDocumentsRun(t *testing.T) {
	project, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, pattern := range []string{"README.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(project, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "\n```console") {
				continue
			}
			found++
			name, _ := filepath.Rel(project, file)
			t.Run(name, func(t *testing.T) { runDocument(t, project, file, string(text)) })
		}
	}
	if found < 5 {
		t.Errorf("only %d documents have commands", found)
	}
}

func runDocument(t *testing.T, project, file, text string) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(project, "scenarios"), filepath.Join(dir, "scenarios")); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address.Free(t))
	if err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "HOME="+filepath.Join(dir, ".home"), "XDG_STATE_HOME="+
		filepath.Join(dir, ".state"),
		guest.CacheVariable+"="+os.Getenv(guest.CacheVariable), "COLUMNS=120")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// terminal runs the commands of a block, and returns what is seen.
	terminal := func(block string) string {
		var seen strings.Builder
		status := 0
		for _, line := range strings.Split(block, "\n") {
			typed, isCommand := strings.CutPrefix(line, "$ ")
			if !isCommand {
				continue
			}
			fmt.Fprintln(&seen, line)
			shell := exec.CommandContext(ctx, "sh", "-c",
				fmt.Sprintf("(exit %d); %s", status, strings.ReplaceAll(typed, documentPort, port)))
			shell.Dir, shell.Env = dir, environment
			output, err := shell.CombinedOutput()
			if status = shell.ProcessState.ExitCode(); err != nil && status < 0 {
				t.Fatalf("%s: %v", typed, err)
			}
			seen.WriteString(strings.ReplaceAll(string(output), port, documentPort))
		}
		return seen.String()
	}
	blocks := documentBlocks(text)
	waiting := make([]chan string, len(blocks))
	seen := make([]string, len(blocks))
	for i, block := range blocks {
		language, argument, _ := strings.Cut(block.info, " ")
		switch {
		case language == "yaml" && argument != "":
			if err := os.WriteFile(filepath.Join(dir, argument), []byte(block.text), 0o644); err != nil {
				t.Fatal(err)
			}
		case block.info == "console background":
			waiting[i] = make(chan string, 1)
			go func() { waiting[i] <- terminal(block.text) }()
		case language == "console":
			seen[i] = terminal(block.text)
		}
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		if waiting[i] != nil {
			seen[i] = <-waiting[i]
		}
		if !strings.HasPrefix(blocks[i].info, "console") || showsDocument(blocks[i].text, seen[i]) {
			continue
		}
		if *update {
			text = text[:blocks[i].start] + seen[i] + text[blocks[i].end:]
			continue
		}
		t.Errorf("it prints\n%s\nand the document shows\n%s", seen[i], blocks[i].text)
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// showsDocument reports whether a block of a document is what a terminal has shown, but for "..." and numbers of a run.
func showsDocument(block, seen string) bool {
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range strings.SplitAfter(documentLasting(block), "\n") {
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?s:.*)`)
			continue
		}
		pattern.WriteString(regexp.QuoteMeta(line))
	}
	pattern.WriteString("$")
	return regexp.MustCompile(pattern.String()).MatchString(documentLasting(seen))
}

// documentLasting replaces what differs from run to run: seeds, ports, keys, addresses, times and rates, with the room
// they take.
func documentLasting(text string) string {
	for _, each := range []struct{ pattern, by string }{
		{`seed \d+`, "seed N"}, {`(127(?:\.\d+){3}):\d+`, "$1:PORT"}, {`0x[0-9a-f]+`, "0xN"},
		{` *[+-]?\b[\d.]+ ?([num]?s|[KMG]bit/s|[km]/s|[kM])\b`, " N"}, {` *\+\d+\.\d{3} \d{3}\b`, " N"},
		{`(\S) {2,}`, "$1 "},
	} {
		text = regexp.MustCompile(each.pattern).ReplaceAllString(text, each.by)
	}
	return text
}

// A document that shows something else than what is seen is wrong, in words as in numbers that mean something.
func TestShowsDocument(t *testing.T) {
	for name, c := range map[string]struct {
		block, seen string
		want        bool
	}{
		"same":          {"$ a\nPASS\n", "$ a\nPASS\n", true},
		"time":          {"PASS  a   1.30 ms\n", "PASS  a    113 us\n", true},
		"seed":          {"1 case, seed 12\n", "1 case, seed 4711\n", true},
		"port":          {"-> 127.0.0.2:44066\n", "-> 127.0.0.2:5\n", true},
		"left out":      {"a\n...\nd\n", "a\nb\nc\nd\n", true},
		"column":        {"size  messages\n64B  200\n", "size   messages\n64B   200\n", true},
		"word":          {"PASS\n", "FAIL\n", false},
		"number":        {"status 8\n", "status 9\n", false},
		"line more":     {"a\n", "a\nb\n", false},
		"last line":     {"a\n...\nd\n", "a\nb\nc\n", false},
		"line less":     {"a\nb\n", "a\n", false},
		"other address": {"127.0.0.1:5\n", "127.0.0.2:5\n", false},
	} {
		if got := showsDocument(c.block, c.seen); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
