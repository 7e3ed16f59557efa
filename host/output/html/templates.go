// Package html writes a report as one page that needs no script, style or picture from elsewhere. It is readable
// without scripts, and light or dark like the reader's system.
package html

import (
	"embed"
	"html/template"
	"strings"
	"time"

	"rdmarun/host/output/terminal"
)

//go:embed page
var page embed.FS

// parse reads the templates, which are part of the program: an error is one of the program.
func parse() *template.Template {
	style, err := page.ReadFile("page/style.css")
	if err != nil {
		panic(err)
	}
	var script []byte
	for _, name := range []string{"page/filter.js", "page/chart.js"} {
		text, err := page.ReadFile(name)
		if err != nil {
			panic(err)
		}
		script = append(script, text...)
	}
	functions := template.FuncMap{
		"style":    func() template.CSS { return template.CSS(style) },
		"script":   func() template.JS { return template.JS(script) },
		"duration": duration,
		"ns":       func(ns int64) string { return duration(time.Duration(ns)) },
		"when":     func(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") },
	}
	return template.Must(template.New("page").Funcs(functions).ParseFS(page, "page/*.html"))
}

// duration is the terminal's.
func duration(d time.Duration) string { return narrow(terminal.Duration(d)) }

// narrow is a number with its unit as the terminal has it, with a space that does not break.
func narrow(text string) string { return strings.ReplaceAll(text, " ", "\u202f") }

// size is an amount of data as the terminal has it.
func size(n int64) string { return terminal.Units{}.Bytes(n) }
