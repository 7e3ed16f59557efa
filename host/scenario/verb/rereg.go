package verb

import (
	"context"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// reregVerb changes what keys stand for.
func reregVerb() Verb {
	return Verb{
		Name: "rereg", Manual: "ibv_rereg_mr(3)", Yields: Value, Run: reregister, Results: regionResults(),
		Doc: "Change the registration of a buffer while requests may be using it: what is given changes, the rest stays, and so may the keys.  From then on the peer reaches nothing of what was registered before.",
		Arguments: []Argument{
			{Name: "buffer", Type: Buffer, Required: true, Doc: "the buffer"},
			{Name: "access", Type: Rights, Doc: "other rights"},
			{Name: "pd", Type: Domain, Doc: "another protection domain, of alloc_pd"},
			{Name: "offset", Type: Size, Doc: "register another part of the buffer, from here"},
			{Name: "length", Type: Size, Doc: "likewise, so many bytes; without it, to the end of the buffer"},
		},
	}
}

func reregister(_ context.Context, call *Call) (Outcome, error) {
	buffer, err := call.Buffer("buffer")
	if err != nil {
		return Outcome{}, err
	}
	var change lab.Change
	if access, given := call.argument("access").(rdmacore.Access); given {
		change.Flags, change.Access = rdmacore.ReregAccess, access
	}
	if call.Has("pd") {
		change.Flags |= rdmacore.ReregPD
		if change.PD, err = domainOf(call); err != nil {
			return Outcome{}, err
		}
	}
	if call.Has("offset") || call.Has("length") {
		change.Flags |= rdmacore.ReregTranslation
		change.Offset, change.Length = call.Integer("offset"), buffer.Size()-call.Integer("offset")
		if call.Has("length") {
			change.Length = call.Integer("length")
		}
	}
	if err := buffer.Reregister(change); err != nil {
		return Outcome{}, err
	}
	return regionOf(buffer), nil
}
