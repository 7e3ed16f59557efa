package output_test

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser is the path of a headless browser; without one the test is skipped, but not in CI.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no Chromium; tools/setup.sh test installs it")
	}
	t.Skip("there is no Chromium to open the page with; tools/setup.sh test installs it")
	return ""
}

// visit opens a page and returns what it looks like once it no longer changes, and the output of the console.
func visit(t *testing.T, url string, flags ...string) (dom, console string) {
	t.Helper()
	profile, err := os.MkdirTemp("", "rdmarun-browser-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(profile) // its helpers may still write there when it has ended; not the test's affair
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	arguments := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--user-data-dir=" + profile,
		"--window-size=1200,1600",
	}, flags...)
	command := exec.CommandContext(ctx, browser(t), append(arguments, url)...)
	command.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var said []string
	for _, line := range strings.Split(stderr.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			said = append(said, line)
		}
	}
	return stdout.String(), strings.Join(said, "\n")
}

var (
	caseElement = regexp.MustCompile(`<details class="case"[^>]*>`)
	hiddenWord  = regexp.MustCompile(` hidden(=""|>| )`)
)

func TestPageInABrowser(t *testing.T) {
	page := "file://" + write(t, "html", true)
	for _, test := range []struct {
		fragment string
		shown    int
		count    string // what the page says of it
	}{
		{"", 8, ""},
		{"#filter=device", 2, "2 of 8"},
		{"#filter=wrong+client", 1, "1 of 8"},
		{"#status=failed,error", 4, "4 of 8"},
		{"#filter=nothing+like+this", 0, "0 of 8"},
	} {
		t.Run("filter "+test.fragment, func(t *testing.T) {
			dom, console := visit(t, page+test.fragment, "--dump-dom")
			if console != "" {
				t.Errorf("the console has\n%s", console)
			}
			elements := caseElement.FindAllString(dom, -1)
			shown := 0
			for _, element := range elements {
				if !hiddenWord.MatchString(element) {
					shown++
				}
			}
			if len(elements) != 8 || shown != test.shown {
				t.Errorf("%d of %d cases are shown, want %d of 8", shown, len(elements), test.shown)
			}
			if !strings.Contains(dom, `aria-live="polite">`+test.count+`</output>`) {
				t.Errorf("the page does not say %q", test.count)
			}
		})
	}
}

// reportCut has the page name the tables of which a part is out of sight, and how many it has.
const reportCut = `<script>addEventListener("load", () => {
	for (const each of document.querySelectorAll("details")) each.open = true;
	const tables = [...document.querySelectorAll(".wide:has(table.stack)")];
	const cut = tables.filter(e => e.scrollWidth > e.clientWidth).map(e => e.getAttribute("aria-label"));
	document.body.dataset.cut = "of " + tables.length + ": " + cut.join(", ");
})</script>`

var cutTables = regexp.MustCompile(`data-cut="of ([0-9]+): ([^"]*)"`)

// TestPageOnANarrowScreen: all columns of the tables are in sight on a telephone.
func TestPageOnANarrowScreen(t *testing.T) {
	page, err := os.ReadFile(write(t, "html", true))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, append(page, reportCut...), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, console := visit(t, "file://"+path, "--window-size=390,1600", "--dump-dom")
	if match := cutTables.FindStringSubmatch(dom); match == nil || match[1] == "0" || match[2] != "" {
		t.Errorf("the tables that are cut are %q\n%s", match, console)
	}
}

func TestPageIsLightAndDark(t *testing.T) {
	page := "file://" + write(t, "html", true)
	light := brightness(t, page, "--blink-settings=preferredColorScheme=1")
	dark := brightness(t, page, "--blink-settings=preferredColorScheme=0")
	if light < 0xe0 || dark > 0x30 {
		t.Errorf("the background is %#x in light and %#x in dark", light, dark)
	}
}

// brightness is that of the page's corner.
func brightness(t *testing.T, page, scheme string) uint32 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.png")
	visit(t, page, scheme, "--screenshot="+path)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	_, green, _, _ := picture.At(3, 3).RGBA()
	return green >> 8
}

func TestPageNeedsNothingElse(t *testing.T) {
	data, err := os.ReadFile(write(t, "html", true))
	if err != nil {
		t.Fatal(err)
	}
	fetched := regexp.MustCompile(`(?i)(src|href)\s*=\s*["']?(https?:)?//|@import|url\(`)
	if match := fetched.Find(data); match != nil {
		t.Errorf("the page would fetch something: %s", match)
	}
}
