package scenario

import (
	"slices"

	"rdmarun/host/scenario/compile"
)

// Place is where a role runs.  What is zero is left to the scenario, then to the provider.
type Place struct {
	Device string
	Port   int
	// GID is an index of the port's table or an IP address.
	GID string
}

// placed is a case with its roles where they were asked to be.
func placed(c *compile.Case, places map[string]Place) *compile.Case {
	if len(places) == 0 {
		return c
	}
	copied := *c
	copied.Roles = slices.Clone(c.Roles)
	for i := range copied.Roles {
		role := &copied.Roles[i]
		for _, name := range []string{"", role.Group, role.Name} {
			place := places[name]
			if place.Device != "" {
				role.Device, role.Port, role.GID = place.Device, place.Port, ""
			}
			if place.GID != "" {
				role.GID = place.GID
			}
		}
	}
	return &copied
}
