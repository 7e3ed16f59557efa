// Package policy holds rules of the project that are tests: they read the source tree and fail with
// the place and the rule.  It has no code that anything imports.
package policy
