package compile

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/verb"
)

// parseStatus reads the status of a CM event: a number, an errno (which events carry negative), or a
// reject reason.
func parseStatus(text string) (int, *problem) {
	if n, bad := parseInteger(text); bad == nil {
		return n, nil
	}
	if errno, ok := verb.ParseErrno(text); ok {
		return -int(errno), nil
	}
	if reason, ok := verb.ParseRejectReason(text); ok {
		return reason, nil
	}
	names := append(verb.ErrnoNames(), verb.RejectReasons()...)
	return 0, &problem{diag.NotOneOf, quoted(text) + " is no status of an event", diag.DidYouMean(text, names)}
}

func parseStatusOr(text string) (any, *problem) {
	n, bad := parseStatus(text)
	if bad != nil {
		return nil, bad
	}
	return n, nil
}

// noErrno is the errno 0 of a call that must succeed, in `expect: {errno: 0}`.
const noErrno = "0"

// errnoArgument describes what `expect: {errno: ..}` takes.
func errnoArgument() *verb.Argument {
	return &verb.Argument{Name: "errno", Type: verb.Word, Words: append(verb.ErrnoNames(), noErrno)}
}
