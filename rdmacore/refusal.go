package rdmacore

// #include "core/core.h"
import "C"

import "runtime"

// answer is the result of a call, and what the provider says of its refusal beyond the errno; "" when that is all.
type answer struct {
	result  int
	refusal string
}

// ask makes a call about an id.  soft keeps the sentence of the last refusal a thread, as errno is kept: so the
// goroutine stays on its thread until it has read it.  Only calls of the connection manager come here; what is posted
// and polled pays nothing.
func (p *Provider) ask(call func() C.int) answer {
	if p.c.refusal == nil {
		return answer{result: int(call())}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.core_forget_refusal(p.c)
	answer := answer{result: int(call())}
	if answer.result < 0 {
		answer.refusal = C.GoString(C.core_refusal(p.c))
	}
	return answer
}
