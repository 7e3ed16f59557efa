package scenario

import "rdmarun/rdmacore"

// OpenSoft opens the embedded provider for one case; it is an Open of RunConfig.
func OpenSoft(_ Selected, seed *uint64) (*rdmacore.Provider, error) {
	var options []rdmacore.Option
	if seed != nil {
		options = append(options, rdmacore.WithSeed(*seed))
	}
	return rdmacore.Open("soft", options...)
}
