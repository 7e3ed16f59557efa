package compile

import (
	"regexp"
	"strings"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// name gives a case its name and its id.  The id has no values in the name, and all values of the matrices
// behind it: FILE::remote key violation[bad=past_end].  The name has those behind it that are not in it.
func (c *compiler) name(p *Program, compiled *Case, node *syntax.Node, combo combination, s *scope) {
	compiled.ID, compiled.Name = p.File, p.Name
	if node != nil {
		compiled.ID += "::" + label(node.Value)
	} else {
		node = c.file.Name // the case is the file, whose name may have the values of its matrix
	}
	if node != nil {
		compiled.Name = node.Value
		if name := c.knownIn(&verb.Argument{Name: "name", Type: verb.Text}, node, s); name != nil {
			compiled.Name = name.(string)
		}
	}
	if len(combo) > 0 {
		compiled.ID += "[" + combo.id() + "]"
	}
	if unsaid := combo.unsaid(node); len(unsaid) > 0 {
		compiled.Name += " [" + unsaid.id() + "]"
	}
}

// unsaid are the settings that the expressions of a name do not mention.
func (combo combination) unsaid(name *syntax.Node) combination {
	said := make(map[string]bool)
	if name != nil {
		pieces, _ := expression.Scan(name.Value)
		for _, piece := range pieces {
			for word := range expression.Words(piece.Text) {
				said[word] = said[word] || piece.Expression
			}
		}
	}
	var list combination
	for _, each := range combo {
		if !said[each.name] {
			list = append(list, each)
		}
	}
	return list
}

// gap stands for an expression that is cut out of a name.
const gap = "\x00"

var (
	// stuck is an expression with what it is joined to and means nothing without it: the - of ping-$(i), the KiB of $(n)KiB.
	stuck = regexp.MustCompile(`[=:%/+_-]*` + gap + `(?:[\pL\pN_=%/+-]|` + gap + `|[.:][\pL\pN_` + gap + `])*`)
	// empty are brackets and quotes around nothing.
	empty = regexp.MustCompile(`\(\s*\)|\[\s*\]|\{\s*\}|""|\'\'`)
	// before and behind are spaces where none belongs, doubled is a mark that ends nothing.
	before  = regexp.MustCompile(`\s+([,;:.!?)\]}])`)
	behind  = regexp.MustCompile(`([(\[{])[\s,;:]+`)
	doubled = regexp.MustCompile(`[,;:]\s*([,;:.)\]}])`)
)

// label is a name without its expressions and what made sense with them alone: the same for all their values.
func label(name string) string {
	var text strings.Builder
	pieces, _ := expression.Scan(name)
	if len(pieces) == 1 && !pieces[0].Expression {
		return strings.Join(strings.Fields(name), " ")
	}
	for _, piece := range pieces {
		if piece.Expression {
			text.WriteString(gap)
		} else {
			text.WriteString(strings.ReplaceAll(piece.Text, gap, ""))
		}
	}
	left := stuck.ReplaceAllString(text.String(), "")
	if strings.TrimSpace(left) == "" {
		left = strings.ReplaceAll(text.String(), gap, "") // there is nothing else: a unit, say
	}
	for tidy := ""; tidy != left; {
		tidy = left
		for _, each := range []*regexp.Regexp{before, behind, doubled} {
			left = each.ReplaceAllString(left, "$1")
		}
		left = empty.ReplaceAllString(left, "")
	}
	return strings.Trim(strings.Join(strings.Fields(left), " "), " ,;:-=")
}
