package scenario

import "rdmarun/rdmacore"

// OpenSoft opens the embedded provider for one case; it is an Open of RunConfig.
func OpenSoft(c Selected, seed *uint64) (*rdmacore.Provider, error) {
	return rdmacore.Open("soft", c.Scenario.Program.Soft.Options(seed)...)
}
