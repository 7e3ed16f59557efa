package html

import (
	"embed"
	"html/template"
	"time"
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
