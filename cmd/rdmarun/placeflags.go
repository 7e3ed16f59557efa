package main

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

// placeFlags say where roles run.
type placeFlags struct{ devices, gids []string }

func (f *placeFlags) register(a *app, command *cobra.Command) {
	set := command.Flags()
	set.StringArrayVarP(&f.devices, "device", "d", nil, "device of a role: ROLE=DEVICE[:PORT], without ROLE= of all (repeatable)")
	set.StringArrayVar(&f.gids, "gid", nil, "address of a role: ROLE=INDEX or ROLE=ADDRESS of the GID table, without ROLE= of all (repeatable)")
	completeFlag(command, "device", a.completeDevices)
	completeFlag(command, "gid", a.completeGIDs)
}

// read gathers both flags by role; "" is all roles.
func (f *placeFlags) read() (map[string]scenario.Place, error) {
	places := make(map[string]scenario.Place)
	for _, text := range f.devices {
		role, device := splitRole(text)
		place := places[role]
		name, port, hasPort := strings.Cut(device, ":")
		number, err := strconv.Atoi(port)
		if name == "" || hasPort && (err != nil || number < 1 || number > 255) {
			return nil, withHint(usageError("--device %s: not of the form ROLE=DEVICE or ROLE=DEVICE:PORT", text), "for example: -d server=mlx5_0:1")
		}
		place.Device, place.Port = name, number
		places[role] = place
	}
	for _, text := range f.gids {
		role, gid := splitRole(text)
		place := places[role]
		_, notAnIndex := strconv.ParseUint(gid, 10, 16)
		if _, err := netip.ParseAddr(gid); err != nil && notAnIndex != nil {
			return nil, withHint(usageError("--gid %s: neither an index of the GID table nor an IP address", text), "\"rdmarun devices\" lists both")
		}
		place.GID = gid
		places[role] = place
	}
	return places, nil
}

func splitRole(text string) (role, rest string) {
	if role, rest, ok := strings.Cut(text, "="); ok {
		return role, rest
	}
	return "", text
}

// check refuses roles that no case has: they would place nothing, silently.
func (f *placeFlags) check(cases []scenario.Selected) error {
	known := make(map[string]bool)
	for _, each := range cases {
		for _, role := range each.Case.Roles {
			known[role.Name], known[role.Written()] = true, true
		}
	}
	for _, text := range slices.Concat(f.devices, f.gids) {
		if role, _ := splitRole(text); role != "" && !known[role] {
			err := usageError("%s: no selected case has a role %q", text, role)
			return withHint(err, diag.DidYouMean(role, slices.Sorted(maps.Keys(known))))
		}
	}
	return nil
}
