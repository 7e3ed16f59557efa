// Package policy holds rules of the project that are tests: they read the source tree and fail with
// the place and the rule.  In addition, it has what tests of other packages ask about the source (Operations);
// no program imports it.
package policy
