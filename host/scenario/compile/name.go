package compile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Name is what `as` calls a result: a word, or one of several results under one word, eps[3].
type Name struct {
	// Word is "" for a result without a name.
	Word string
	text *Value // with the index; nil for a word alone
}

// maxIndexed bounds the results under one word: expressions see them as a list.
const maxIndexed = 1 << 16

// indexedName is the text of one of several, with the word and the index.
var indexedName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)\[(0|[1-9][0-9]*)\]$`)

// cutName takes the text of one of several apart.
func cutName(text string) (word string, index int, ok bool) {
	match := indexedName.FindStringSubmatch(text)
	if match == nil {
		return "", 0, false
	}
	index, err := strconv.Atoi(match[2])
	return match[1], index, err == nil && index < maxIndexed
}

// badIndex is the error for a text that is not one of several.
func badIndex(text string) *problem {
	return diag.Wrong(diag.BadName, quoted(text)+" cannot be a name",
		fmt.Sprintf("one of several results is called by a word and a number, eps[0] to eps[%d]", maxIndexed-1))
}

// Get is the name when the step runs: its text as in other steps, and the index, -1 for a word alone.
func (n Name) Get(env expression.Env) (text string, index int, err error) {
	if n.text == nil {
		return n.Word, -1, nil
	}
	value, err := n.text.Get(env)
	if err != nil {
		return "", 0, err
	}
	text, _ = value.(string)
	_, index, ok := cutName(text)
	if !ok {
		return "", 0, &EvaluationError{n.text.Span, badIndex(text)}
	}
	return text, index, nil
}

// asName is the value of `as`; in a fragment it may be a parameter.
func (d *decoder) asName(node *syntax.Node, at place) Name {
	value := d.scalar(&verb.Argument{Name: "as", Type: verb.Text}, node, at)
	if value == nil {
		return Name{}
	}
	var name Name
	switch known, ok := value.Constant(); {
	case !ok:
		name = Name{d.wordOf(node, at), value}
		if name.Word == "" {
			if !d.abstract {
				d.errors.Report(diag.NotConstant, value.Span, "a name must be known before the run").
					WithHint("of one of several only the number need not be: eps[$(i)]")
			}
			return Name{}
		}
	case strings.HasSuffix(known.(string), "]"):
		word, _, good := cutName(known.(string))
		if !good {
			d.report(badIndex(known.(string)), value.Span)
			return Name{}
		}
		name = Name{word, value}
	default:
		name.Word = known.(string)
	}
	named := *node
	named.Value = name.Word
	if !d.checkName(&named) {
		return Name{}
	}
	return name
}

// wordOf is the word of a name with an index that is not known before the run, eps in eps[$(i)]; "" for any other text.
func (rs *resolver) wordOf(node *syntax.Node, at place) string {
	pieces, _ := expression.Scan(node.Value)
	if len(pieces) == 1 && pieces[0].Expression { // a parameter of the fragment
		return at.scope.find(strings.TrimSpace(pieces[0].Text)).word
	}
	if len(pieces) < 2 || pieces[len(pieces)-1].Text != "]" {
		return ""
	}
	word := ""
	for _, piece := range pieces {
		if piece.Expression {
			known, _ := at.scope.find(strings.TrimSpace(piece.Text)).value.(string)
			word += known
			continue
		}
		before, _, found := strings.Cut(piece.Text, "[")
		if word += before; found {
			return word
		}
	}
	return ""
}

// madeBy is the name of an object that a step makes, of a role or, for those of the case, of none.
type madeBy struct {
	kind       *verb.Object
	role, name string
}

// several is written for an index that is known only in the run.
const several = "[..]"

// add notes that a step of a role makes something.
func (t *timeline) add(kind *verb.Object, role string, name Name) {
	role = ownerOf(kind, role)
	text := name.Word
	if name.text != nil {
		t.made[madeBy{kind, role, name.Word + "["}] = true
		text += several
		if known, ok := name.text.Constant(); ok {
			text = known.(string)
		}
	}
	t.made[madeBy{kind, role, text}] = true
}

// ownerOf is the role that has what a step of a role makes.
func ownerOf(kind *verb.Object, role string) string {
	if kind.OfCase {
		return someRole
	}
	return role
}

// has reports whether a step has made what a text names, or may have.
func (t *timeline) has(kind *verb.Object, role, text string) bool {
	word, _, indexed := cutName(text)
	for _, owner := range []string{role, someRole} {
		if t.made[madeBy{kind, owner, text}] || indexed && t.made[madeBy{kind, owner, word + several}] {
			return true
		}
	}
	return false
}

// hasSome reports whether a step has made one of several.
func (t *timeline) hasSome(kind *verb.Object, role, word string) bool {
	return t.made[madeBy{kind, role, word + "["}] || t.made[madeBy{kind, someRole, word + "["}]
}

// names lists what steps of a role have made.
func (t *timeline) names(kind *verb.Object, role string) []string {
	role = ownerOf(kind, role)
	var names []string
	for _, each := range slices.Collect(maps.Keys(t.made)) {
		if each.kind == kind && each.role == role && !strings.HasSuffix(each.name, "[") {
			names = append(names, each.name)
		}
	}
	slices.Sort(names)
	return names
}

// isMade reports whether a step before has made what a value names, as far as that is known; if not, the name it has.
func (rs *resolver) isMade(kind *verb.Object, node *syntax.Node, value *Value, at place) (name string, made bool) {
	if rs.abstract || !kind.OfCase && at.role == "" {
		return "", true
	}
	if known, ok := value.Constant(); ok {
		return known.(string), rs.timeline.has(kind, at.role, known.(string))
	}
	word := rs.wordOf(node, at)
	return word + several, word == "" || rs.timeline.hasSome(kind, at.role, word)
}

// shown is the name in messages and tables of what is known before the run.
func (n Name) shown() string {
	if n.text == nil {
		return n.Word
	}
	if known, ok := n.text.Constant(); ok {
		return known.(string)
	}
	return n.Word + several
}

// addResult gives a result its name in expressions, where several under one word are a list.
func (d *decoder) addResult(node *syntax.Node, at place, name Name, result expression.Type) {
	if name.text != nil {
		result = severalResults{expression.List(result)}
	}
	if owner := d.hasBuffer(at, name.Word); owner != "" {
		d.errors.Report(
			diag.NameTaken, node.Span(), "%q is a buffer of role %s already, and both would be %s.%s", name.Word, owner,
			owner, name.Word,
		).
			WithHint("choose another name")
		return
	}
	earlier := d.timeline.results[name.Word][at.role]
	_, one := earlier.(expression.Object)
	_, many := earlier.(severalResults)
	if name.text != nil && one || name.text == nil && many {
		d.errors.Report(
			diag.NameTaken, node.Span(), "%q is the name of one result, and %s[0] that of one of several", name.Word,
			name.Word,
		).
			WithHint("rename one of them")
		return
	}
	d.timeline.addResult(at.role, name.Word, result)
}

// severalResults is the type of results under one word.
type severalResults struct{ expression.Type }

// hasBuffer is the role of a place when it has a buffer of that name, or of those that it may be one; else "".
func (rs *resolver) hasBuffer(at place, buffer string) string {
	if r := rs.roles[at.role]; r != nil && r.buffers[buffer] {
		return r.name
	}
	for _, name := range rs.roleNames() {
		if at.anyRole && rs.roles[name].buffers[buffer] {
			return name
		}
	}
	return ""
}

func (d *decoder) unknownRole(name string, span diag.Span) { d.report(d.noRole(name), span) }

// roleMembers are what expressions find in every role, ROLE.address.
var roleMembers = []string{"name", "address", "device", "counters"}

// checkName checks what `as` gives a name to.
func (d *decoder) checkName(node *syntax.Node) bool {
	switch {
	case node.Kind != syntax.Scalar || !ast.IsName(node.Value):
		d.errors.Report(diag.BadName, node.Span(), "%q cannot be a name", node.Value).
			WithHint("a name has letters, digits and _, does not begin with a digit, and is not a word of expressions")
	case slices.Contains(roleMembers, node.Value):
		d.errors.Report(diag.BadName, node.Span(), "%q is a member of every role in expressions", node.Value).
			WithHint("choose another name")
	case d.roles[node.Value] != nil:
		d.errors.Report(diag.NameTaken, node.Span(), "%q is a role already", node.Value)
	case isParam(d.file, node.Value):
		d.errors.Report(diag.NameTaken, node.Span(), "%q is a parameter already", node.Value)
	case d.axisNamed(node.Value) != nil:
		d.errors.Report(
			diag.NameTaken, node.Span(), "%q is a name of a matrix already, in line %d", node.Value,
			d.axisNamed(node.Value).Span().Line,
		).
			WithHint(
				"rename one of them, or give the name to each case that wants it, and not to the file",
			)
	default:
		return true
	}
	return false
}

func isParam(file *ast.File, name string) bool {
	return slices.ContainsFunc(file.Params, func(p *ast.Param) bool { return p.Name.Value == name })
}
