package main

import (
	"regexp"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// usage is what an example uses: which words of which table, by where they stand.
type usage struct {
	words map[[2]string]bool // table and word
	// The texts of expressions: those of steps, and the conditions of requires, when and thresholds.
	steps, conditions strings.Builder
	verbs             *verb.Table
}

// usageOf reads a scenario as the checker does, by where each word stands.
func usageOf(text string) *usage {
	u := &usage{words: make(map[[2]string]bool), verbs: verb.NewTable()}
	root := syntax.Parse(diag.NewSource("example.yaml", []byte(text)), &diag.List{})
	u.mapping(root, "file")
	return u
}

func (u *usage) add(table, word string) { u.words[[2]string{table, word}] = true }

// mapping notes the keys of a mapping that is described by a table, and goes on to their values.
func (u *usage) mapping(node *syntax.Node, table string) {
	if node == nil || node.Kind != syntax.Mapping {
		return
	}
	for _, pair := range node.Pairs {
		u.add(table, pair.Key.Value)
		u.value(table, pair.Key.Value, pair.Value)
	}
}

// value reads what stands behind a key.
func (u *usage) value(table, key string, value *syntax.Node) {
	switch key {
	case "params", "roles", "buffers", "fragments":
		for _, pair := range value.Pairs {
			u.mapping(pair.Value, key)
		}
	case "cases", "thresholds":
		for _, item := range value.Items {
			u.mapping(item, key)
		}
	case "matrix", "provider", "soft", "defaults", "path", "place", "limits", "xfail", "raises", "abort_on_fail", "took":
		u.mapping(value, key)
	case "guest":
		u.mapping(value, key) // of a role; that of a step is a word
	case "setup", "steps", "finally", "do", "parallel":
		for _, item := range value.Items {
			u.step(item)
		}
	case "requires", "pass":
		for _, item := range value.Items {
			u.conditions.WriteString(item.Value + "\n")
		}
	case "when", "if":
		if table != "step" {
			u.conditions.WriteString(value.Value + "\n")
		}
	case "imports":
		for _, pair := range value.Pairs {
			u.add("std", pair.Value.Value)
		}
	case "use":
		u.add("std", value.Value)
	case "metric":
		metric, _, _ := strings.Cut(value.Value, "{")
		u.add("metric", metric)
	case "type":
		if table == "params" {
			u.add("type", value.Value)
		}
	}
	u.expressions(key, value)
	u.data(value)
}

// step notes the keys of a step by what they are.
func (u *usage) step(node *syntax.Node) {
	for _, pair := range node.Pairs {
		key := pair.Key.Value
		if u.verbs.Lookup(key) != nil {
			u.add("verb", key)
			u.data(pair.Value)
			u.expressions(key, pair.Value)
			continue
		}
		u.add("step", key) // or an action: no word is both
		u.add("action", key)
		u.value("step", key, pair.Value)
		if key != "expect" {
			continue
		}
		for _, field := range pair.Value.Pairs {
			for _, matcher := range field.Value.Pairs {
				u.add("matcher", matcher.Key.Value)
			}
		}
	}
}

// data notes the forms of data and their integers, which stand anywhere among arguments.
func (u *usage) data(node *syntax.Node) {
	for _, pair := range node.Pairs {
		u.add("data", pair.Key.Value)
		if pair.Key.Value == "fields" {
			for _, item := range pair.Value.Items {
				for _, field := range item.Pairs {
					u.add("integer", field.Key.Value)
				}
			}
		}
		u.data(pair.Value)
	}
	for _, item := range node.Items {
		u.data(item)
	}
}

// expressions gathers those of a value, and of what is in it.
func (u *usage) expressions(key string, node *syntax.Node) {
	if key == "assert" || key == "if" {
		u.steps.WriteString(node.Value + "\n")
	}
	pieces, _ := expression.Scan(node.Value)
	for _, piece := range pieces {
		if piece.Expression {
			u.steps.WriteString(piece.Text + "\n")
		}
	}
	for _, pair := range node.Pairs {
		u.expressions("", pair.Value)
	}
	for _, item := range node.Items {
		u.expressions("", item)
	}
}

// has tells whether a word of a table is used.
func (u *usage) has(table, word string) bool {
	switch table {
	case "operator":
		return usesOperator(u.steps.String(), word)
	case "function":
		return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\(`).MatchString(u.steps.String())
	case "unit":
		return regexp.MustCompile(`\d` + word + `\b`).MatchString(quotedText.ReplaceAllString(u.steps.String(), "x"))
	case "requirement":
		return named(word).MatchString(u.conditions.String())
	case "name":
		return named(word).MatchString(u.steps.String() + u.conditions.String())
	}
	return u.words[[2]string{table, word}]
}

// named finds a name in which words of capitals stand for any name.
func named(word string) *regexp.Regexp {
	form := regexp.MustCompile(`\\\[0\\\]|\b[A-Z]+\b`).ReplaceAllStringFunc(regexp.QuoteMeta(word), func(part string) string {
		switch part {
		case "ROLE":
			return `[a-z]+(\[\d+\])?`
		case `\[0\]`:
			return `\[\d+\]`
		}
		return `"?\w+"?`
	})
	return regexp.MustCompile(`(^|[^\w.])` + form + `($|[^\w])`)
}

// symbols are the operators that stand in a text, each whole: no < is in a <=.
var symbols = regexp.MustCompile(`\*\*|\.\.|\?\.|\?\?|&&|\|\||[=!<>]=|[-+*/%<>!|.?:]|\[`)

var quotedText = regexp.MustCompile(`'[^']*'|"[^"]*"`)

func usesOperator(text, operator string) bool {
	text = quotedText.ReplaceAllString(text, "x")
	if regexp.MustCompile(`^\w+$`).MatchString(operator) {
		return regexp.MustCompile(`\b` + operator + `\b`).MatchString(text)
	}
	found := make(map[string]bool)
	for _, symbol := range symbols.FindAllString(text, -1) {
		found[symbol] = true
	}
	switch operator {
	case "?:":
		return found["?"] && found[":"]
	case "[ ]":
		return found["["]
	}
	return found[operator]
}
