package exec

import (
	"rdmarun/host/scenario/compile"
	"rdmarun/rdmacore"
)

// SkipReason tells, without running it, why a case would be skipped on a provider; "" when it would run.
func SkipReason(provider *rdmacore.Provider, c *compile.Case) (string, error) {
	if !conditional(c) {
		return "", nil
	}
	env, err := surroundings(provider, c)
	if err != nil {
		return "", err
	}
	return unmet(provider, c, env)
}
