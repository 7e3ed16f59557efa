package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"rdmarun/host/scenario/verb"
)

// property is an argument or a result of one verb or of several that take or give it alike.
type property struct {
	name  string
	verbs []string
	// inside is the argument whose key it is, "" for an argument of the verb itself.
	inside     string
	notes, doc string
	// words are the values that it can have, where those have names; keys are what it has as a mapping.
	words, keys []string
}

// owner is what has the property.
func (p property) owner() string {
	verbs := strings.Join(p.verbs, ", ")
	if p.inside == "" {
		return verbs
	}
	return p.inside + " in " + verbs
}

// gather joins those that differ in nothing but their verbs.
func gather(list []property, next property) []property {
	for i, known := range list {
		if known.name == next.name && known.inside == next.inside && known.notes == next.notes && known.doc == next.doc {
			list[i].verbs = append(known.verbs, next.verbs...)
			return list
		}
	}
	return append(list, next)
}

// argumentProperties are the arguments of all verbs, and the keys of those that are mappings.
func argumentProperties() []property {
	var list []property
	for _, v := range verb.NewTable().Verbs() {
		for _, argument := range v.Arguments {
			if argument.Inline {
				continue // its keys are a topic of their own
			}
			list = gather(list, property{argument.Name, []string{v.Name}, "", argumentNotes(argument), argument.Doc, argument.Words, keysOf(argument)})
			for _, field := range fieldsOf(argument) {
				list = gather(list, property{field.Name, []string{v.Name}, argument.Name, argumentNotes(field), field.Doc, field.Words, nil})
			}
		}
	}
	for i, each := range list {
		if each.inside == "qp" {
			list[i].verbs = append(each.verbs, "defaults")
		}
	}
	return list
}

// resultProperties are the results of all verbs.
func resultProperties() []property {
	var list []property
	for _, v := range verb.NewTable().Verbs() {
		for _, result := range v.Results {
			list = gather(list, property{result.Name, []string{v.Name}, "", resultNotes(result), result.Doc, nil, nil})
		}
	}
	return list
}

// fieldsOf are the keys of an argument that is a mapping of its own.
func fieldsOf(argument verb.Argument) []verb.Argument {
	if argument.Type == verb.QueuePair {
		return verb.QueuePairArguments()
	}
	return argument.Fields
}

// keysOf are their names.
func keysOf(argument verb.Argument) []string {
	var names []string
	for _, field := range fieldsOf(argument) {
		names = append(names, field.Name)
	}
	return names
}

// propertySubject is a topic of what verbs take or give.
func propertySubject(name, title string, properties func() []property) subject {
	return subject{name: name, title: title, rows: func() [][2]string { return propertyRows(properties()) }, show: func(w io.Writer, word string) bool {
		return showProperties(w, name, properties(), word)
	}}
}

// propertyRows names each property once.  Where verbs differ in it, the first tells.
func propertyRows(list []property) [][2]string {
	var rows [][2]string
	seen := make(map[string]bool)
	for _, each := range list {
		if !seen[each.name] {
			seen[each.name] = true
			rows = append(rows, [2]string{each.name, each.doc})
		}
	}
	slices.SortFunc(rows, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return rows
}

func showProperties(w io.Writer, kind string, list []property, word string) bool {
	found := false
	for _, each := range list {
		if each.name == word {
			found = true
			fmt.Fprintf(w, "%s: %s of %s\n  %s\n  %s\n", word, kind, each.owner(), each.doc, each.notes)
			if each.keys != nil {
				fmt.Fprintf(w, "  its keys: %s\n", strings.Join(each.keys, ", "))
			}
		}
	}
	return found
}

// showValue explains a word that nothing but an argument has as its value.
func showValue(w io.Writer, word string) bool {
	found := false
	for _, each := range argumentProperties() {
		if slices.Contains(each.words, word) {
			found = true
			fmt.Fprintf(w, "%s: value of %s, argument of %s\n  %s\n", word, each.name, each.owner(), each.doc)
		}
	}
	return found
}

// valueWords are the words that showValue knows.
func valueWords() []string {
	var words []string
	for _, each := range argumentProperties() {
		words = append(words, each.words...)
	}
	return words
}
