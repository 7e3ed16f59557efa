// Package tags reads expressions that select cases by their tags: "smoke && !slow".
package tags
