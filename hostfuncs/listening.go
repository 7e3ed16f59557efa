package hostfuncs

import "net/netip"

// Listening is a report about a guest to which others may want to connect.
type Listening struct {
	At netip.AddrPort
	// Over means that it listens there no more.
	Over bool
	// Err is why it could not bind itself or listen there; nil when it could.
	Err error
}

// listensNow reports that an endpoint listens, unless it was reported before.
func (i *Instance) listensNow(ep *endpoint) {
	if ep.listening.IsValid() || i.listens == nil {
		return
	}
	ep.listening = ep.id.LocalAddr()
	i.listens(Listening{At: ep.listening})
}

// listensNoMore reports that an endpoint, which may have listened, is gone.
func (i *Instance) listensNoMore(ep *endpoint) {
	if ep.listening.IsValid() {
		i.listens(Listening{At: ep.listening, Over: true})
	}
}

// cannotListen reports why an endpoint could not listen, or not bind its address.
func (i *Instance) cannotListen(at netip.AddrPort, err error) {
	if i.listens != nil {
		i.listens(Listening{At: at, Err: err})
	}
}
