package output_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// measure opens a page, changed by edit, and returns what an expression of JavaScript says of it.
func measure(t *testing.T, expression string, value any, edit func(page string) string, flags ...string) {
	t.Helper()
	text, err := os.ReadFile(write(t, "html", true))
	if err != nil {
		t.Fatal(err)
	}
	page := edit(string(text)) + `<script>{const found = JSON.stringify(` + expression + `);` +
		`document.documentElement.setAttribute('data-found', found)}</script>`
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, console := visit(t, "file://"+path, append(flags, "--dump-dom")...)
	if console != "" {
		t.Errorf("the console has\n%s", console)
	}
	match := regexp.MustCompile(`data-found="([^"]*)"`).FindStringSubmatch(dom)
	if match == nil {
		t.Fatal("nothing was found in the page")
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(match[1])), value); err != nil {
		t.Fatal(err)
	}
}

func unchanged(page string) string { return page }

// opened has all cases unfolded, with names and texts that have no place to break.
func opened(page string) string {
	long := strings.Repeat("long_", 60)
	return strings.NewReplacer(`<details class="case"`, `<details open class="case"`, ">fails<", ">"+long+"<",
		">wrong &lt;status&gt;<", ">"+long+"<", ">soft0 127.0.0.1<", ">"+long+"<", ">smoke<", ">"+long+"<", ">server<",
		">"+long+"<",
	).Replace(page)
}

func TestPageIsNoWiderThanItsWindow(t *testing.T) {
	for _, size := range []string{"360,800", "400,800", "760,800", "1200,800"} {
		t.Run(size, func(t *testing.T) {
			var found struct {
				Width, Window int
				Beyond        []string
			}
			measure(t, `{Width: document.documentElement.scrollWidth, Window: innerWidth, Beyond: [...document.querySelectorAll('body *')]
				.filter(e => !e.closest('.wide, pre, .picture') && e.getBoundingClientRect().right > innerWidth + 1)
				.map(e => e.tagName + '.' + e.getAttribute('class')).slice(0, 5)}`, &found, opened,
				"--window-size="+size)
			if found.Window < 350 || found.Width > found.Window || len(found.Beyond) > 0 {
				t.Errorf("the page is %d pixels wide in a window of %d: %v", found.Width, found.Window, found.Beyond)
			}
		})
	}
}

func TestLanesStandBesideEachOtherWhereThereIsRoom(t *testing.T) {
	for size, want := range map[string]int{"1200,800": 2, "400,800": 1} {
		var columns int
		measure(t, `new Set([...document.querySelectorAll('#case-1 .step')].map(e => e.getBoundingClientRect().left)).size`,
			&columns, opened, "--window-size="+size)
		if columns != want {
			t.Errorf("%s: the steps of two roles are in %d columns, want %d", size, columns, want)
		}
	}
}

func TestPageWithoutScripts(t *testing.T) {
	var found struct {
		Cases, Open int
		Tools       string
	}
	measure(t, `{Cases: [...document.querySelectorAll('.case')].filter(e => e.offsetHeight > 0).length,
		Open: [...document.querySelectorAll('.case')].filter(e => e.open).length,
		Tools: getComputedStyle(document.querySelector('.tools')).display}`, &found, func(page string) string {
		begin := strings.LastIndex(page, "<script>")
		return page[:begin] + page[begin+strings.Index(page[begin:], "</script>"):]
	})
	if found.Cases != 8 || found.Open == 0 || found.Tools != "none" {
		t.Errorf("%+v: without scripts all cases are shown, failed ones open, and nothing that would not work", found)
	}
}

// TestFocusIsSeen gives the elements a class instead of :focus-visible. A window of a browser without a screen has the
// focus at some time after the page's scripts have run, or never.
func TestFocusIsSeen(t *testing.T) {
	var found []struct{ What, Outline string }
	measure(t, `['summary', 'button', 'input', 'pre', '.wide', '.picture'].map(what => {
		const e = document.querySelector(what); e.closest('details')?.setAttribute('open', '');
		e.focus(); e.classList.add('focused');
		return {What: what, Outline: document.activeElement === e ? getComputedStyle(e).outlineStyle : 'no focus'}})`, &found,
		func(page string) string { return strings.ReplaceAll(page, ":focus-visible", ".focused") })
	if len(found) != 6 {
		t.Fatalf("%v", found)
	}
	for _, each := range found {
		if each.Outline != "solid" {
			t.Errorf("%s: the outline of what has the focus is %q", each.What, each.Outline)
		}
	}
}

func TestBaselineIsDashed(t *testing.T) {
	text, err := os.ReadFile(write(t, "html", true))
	if err != nil {
		t.Fatal(err)
	}
	// Two sizes in two pictures of the case and in two over time, and a curve of each in two of the whole run.
	if n := bytes.Count(text, []byte(`<g class="curve hue-0 dashed"`)) +
		bytes.Count(text, []byte(`<g class="curve hue-1 dashed"`)); n != 10 {
		t.Errorf("%d dashed curves", n)
	}
	for _, want := range []string{
		`<li class="before">baseline</li>`, "write latency, by percentile", "write bandwidth, bandwidth over time",
		"compared with the baseline main", "Device soft0",
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestContrast holds the colours against WCAG 2.2's 1.4.3: 4.5 to 1 for text.
func TestContrast(t *testing.T) {
	style, err := os.ReadFile("html/page/style.css")
	if err != nil {
		t.Fatal(err)
	}
	roots := regexp.MustCompile(`:root\{[^}]*\}`).FindAllString(string(style), -1)
	if len(roots) != 2 {
		t.Fatalf("%d sets of colours", len(roots))
	}
	colours := make(map[string]float64)
	for scheme, root := range roots {
		for _, match := range regexp.MustCompile(`--(\w+):#([0-9a-f]{3,6})`).FindAllStringSubmatch(root, -1) {
			colours[match[1]] = luminance(t, match[2])
		}
		for _, pair := range []string{
			"ink bg", "ink card", "ink soft", "ink badsoft", "dim bg", "dim card", "dim soft", "dim badsoft", "good bg",
			"good card",
			"bad bg", "bad card", "bad badsoft", "warn card", "info card", "info badsoft",
		} {
			text, ground, _ := strings.Cut(pair, " ")
			a, b := colours[text], colours[ground]
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
				t.Errorf("%s on %s in scheme %d: %.2f to 1", text, ground, scheme, ratio)
			}
		}
		// Curves: 1.4.11 wants 3 to 1 where there is no text.  Readers can distinguish the colors of the palette. Three
		// of them are lighter; what they show is in words and in the table, too.
		for hue := range 6 {
			least := map[bool]float64{true: 2, false: 3}[scheme == 0 && hue >= 3]
			curve, ground := colours[fmt.Sprintf("hue%d", hue)], colours["card"]
			if ratio := (max(curve, ground) + 0.05) / (min(curve, ground) + 0.05); ratio < least {
				t.Errorf("hue %d in scheme %d: %.2f to 1", hue, scheme, ratio)
			}
		}
	}
}

// luminance is that of sRGB (WCAG 2.2, relative luminance).
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		channel := float64(value) / 255
		if channel <= 0.04045 {
			sum += weight * channel / 12.92
		} else {
			sum += weight * math.Pow((channel+0.055)/1.055, 2.4)
		}
	}
	return sum
}

// TestPageHasTheTerminalsUnits: a time is written in one form everywhere.
func TestPageHasTheTerminalsUnits(t *testing.T) {
	page, err := os.ReadFile(write(t, "html", true))
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.IndexRune(page, 'µ'); at >= 0 {
		t.Errorf("µ in %q", page[max(at-40, 0):at+10])
	}
	if !bytes.Contains(page, []byte("\u202fus")) {
		t.Error("there is no time in microseconds")
	}
}
