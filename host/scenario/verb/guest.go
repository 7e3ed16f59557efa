package verb

// GuestOutcomes are the ways in which a guest can end.
func GuestOutcomes() []string { return []string{"exited", "trapped", "timed_out", "stopped", "failed"} }

// GuestCallResult describes the result of a call of a guest's function.
func GuestCallResult() *Verb {
	return &Verb{
		Name: "guest: call", Yields: Value,
		Doc:     "Call a function of a guest that waits at a barrier.",
		Results: []Result{{Name: "result", Type: Integer, Doc: "what it returned, with a sign"}},
	}
}

// GuestResult describes the result of a guest's steps, which are no verbs of the table.
func GuestResult() *Verb {
	return &Verb{
		Name: "guest", Yields: Value,
		Doc: "Start, run, wait for or stop the guest of a role.",
		Results: []Result{
			{Name: "exit", Type: Integer, Default: 0, Doc: "exit code"},
			{Name: "outcome", Type: Word, Words: GuestOutcomes(), Doc: "how it ended"},
			{Name: "trap", Type: Text, Doc: "why it trapped, \"\" when it did not"},
		},
	}
}
