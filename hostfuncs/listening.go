package hostfuncs

import "net/netip"

// Listening is news of a guest that others may want to connect to.
type Listening struct {
	At netip.AddrPort
	// Over means that it listens there no more.
	Over bool
	// Err is why it could not bind itself or listen there; nil when it could.
	Err error
}

// listensNow tells that an endpoint listens, which it may have done before.
func (i *Instance) listensNow(ep *endpoint) {
	if ep.listening.IsValid() || i.listens == nil {
		return
	}
	ep.listening = ep.id.LocalAddr()
	i.listens(Listening{At: ep.listening})
}

// listensNoMore tells that an endpoint, which may have listened, is gone.
func (i *Instance) listensNoMore(ep *endpoint) {
	if ep.listening.IsValid() {
		i.listens(Listening{At: ep.listening, Over: true})
	}
}

// cannotListen tells what stands in the way of an endpoint that may have been to listen.
func (i *Instance) cannotListen(at netip.AddrPort, err error) {
	if i.listens != nil {
		i.listens(Listening{At: at, Err: err})
	}
}
