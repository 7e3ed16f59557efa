package record

// Fine tells whether a status is no failure: the case passed, failed as is known of it, or was skipped.
func (s Status) Fine() bool { return s == Passed || s == XFailed || s == Skipped }
