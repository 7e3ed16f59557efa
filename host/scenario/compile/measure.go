package compile

import (
	"fmt"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// longestSweep bounds how many sizes one measurement has.
const longestSweep = 4096

// powersKey is the key of {pow2: [a, b]}.
const powersKey = "pow2"

// sizes compiles one size, a list of sizes, or {pow2: [2, 8MiB]}.
func (c *compiler) sizes(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	switch node.Kind {
	case syntax.Sequence:
		return c.converted(c.sizeList(argument, node, at), func(v any) (any, error) {
			return checkedSizes(argument, v.([]int))
		})
	case syntax.Mapping:
		if len(node.Pairs) != 1 || node.Pairs[0].Key.Value != powersKey {
			c.errors.Report(diag.WrongShape, node.Span(), "%s is a list of sizes, or {pow2: [smallest, largest]}", argument.Name)
			return nil
		}
		bounds := node.Pairs[0].Value
		if bounds.Kind != syntax.Sequence || len(bounds.Items) != 2 {
			c.errors.Report(diag.WrongShape, bounds.Span(), "pow2 wants the smallest and the largest size").WithHint("pow2: [2, 8MiB]")
			return nil
		}
		return c.converted(c.sizeList(argument, bounds, at), func(v any) (any, error) {
			list, bad := powers(v.([]int)[0], v.([]int)[1])
			if bad != nil {
				return nil, bad
			}
			return checkedSizes(argument, list)
		})
	}
	return c.scalar(argument, node, at)
}

func (c *compiler) sizeList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if len(node.Items) == 0 {
		c.errors.Report(diag.EmptyList, node.Span(), "%s without a size", argument.Name)
		return nil
	}
	parts := make([]*Value, len(node.Items))
	for i, item := range node.Items {
		if parts[i] = c.scalar(&verb.Argument{Name: argument.Name, Type: verb.Size}, item, at); parts[i] == nil {
			return nil
		}
	}
	return c.combined(node.Span(), parts, func(values []any) (any, error) {
		list := make([]int, len(values))
		for i, value := range values {
			list[i] = value.(int)
		}
		return list, nil
	})
}

// powers lists the powers of two from the first that is not below low to the last that is not above high.
func powers(low, high int) ([]int, *problem) {
	var list []int
	for size := 1; size > 0 && size <= high; size <<= 1 {
		if size >= low {
			list = append(list, size)
		}
	}
	if list == nil {
		return nil, &problem{diag.OutOfRange, fmt.Sprintf("there is no power of two from %d to %d", low, high), "the smallest stands first"}
	}
	return list, nil
}

// checkedSizes is the list with its own checks, as an error that is nil or a *problem.
func checkedSizes(argument *verb.Argument, list []int) (any, error) {
	if bad := checkSizes(argument, list); bad != nil {
		return nil, bad
	}
	return list, nil
}

func checkSizes(argument *verb.Argument, list []int) *problem {
	switch {
	case len(list) == 0:
		return &problem{diag.EmptyList, argument.Name + " without a size", ""}
	case len(list) > longestSweep:
		return &problem{diag.OutOfRange, fmt.Sprintf("%d sizes are more than %d", len(list), longestSweep), ""}
	}
	seen := make(map[int]bool)
	for _, size := range list {
		if bad := check(&verb.Argument{Name: argument.Name, Type: verb.Size, Min: argument.Min, Max: argument.Max}, size); bad != nil {
			return bad
		}
		if seen[size] {
			return &problem{diag.NameTaken, quantity.Size(int64(size)) + " stands there twice", ""}
		}
		seen[size] = true
	}
	return nil
}

// parseSizes reads sizes as -p and an expression's text give them: "64,4KiB", or "2..8MiB" for the powers of two
// between.
func parseSizes(text string) ([]int, *problem) {
	if low, high, isRange := strings.Cut(text, ".."); isRange {
		first, bad := parseSize(strings.TrimSpace(low))
		if bad != nil {
			return nil, bad
		}
		last, bad := parseSize(strings.TrimSpace(high))
		if bad != nil {
			return nil, bad
		}
		return powers(first, last)
	}
	var list []int
	for _, word := range strings.Split(strings.Trim(strings.TrimSpace(text), "[]"), ",") {
		size, bad := parseSize(strings.TrimSpace(word))
		if bad != nil {
			return nil, bad
		}
		list = append(list, size)
	}
	return list, nil
}

// sizesOf fits the result of an expression.
func sizesOf(argument *verb.Argument, value any) (any, *problem) {
	var list []int
	switch v := value.(type) {
	case []int:
		list = v
	case int:
		list = []int{v}
	case string:
		parsed, bad := parseSizes(v)
		if bad != nil {
			return nil, bad
		}
		list = parsed
	case []any:
		for _, each := range v {
			size, bad := fromExpression(&verb.Argument{Name: argument.Name, Type: verb.Size}, each)
			if bad != nil {
				return nil, bad
			}
			list = append(list, size.(int))
		}
	default:
		return nil, wrongType(argument.Type.String(), expression.Word(value), "")
	}
	return list, checkSizes(argument, list)
}

// sizesText writes sizes as parseSizes reads them.
func sizesText(list []int) string {
	words := make([]string, len(list))
	for i, size := range list {
		words[i] = quantity.Size(int64(size))
	}
	return strings.Join(words, ",")
}
