//go:build amd64 && !asan && !msan

#include "textflag.h"

// func call(function uintptr, argument unsafe.Pointer, stack uintptr)
//
// C keeps BX, in which Go's stack pointer waits, and the frame pointer.  The flag that the assembler sets because SP is
// written keeps the runtime from walking the stack here.
TEXT ·call(SB), NOSPLIT, $0-24
	MOVQ	function+0(FP), AX
	MOVQ	argument+8(FP), DI
	MOVQ	stack+16(FP), CX
	MOVQ	SP, BX
	MOVQ	CX, SP
	CALL	AX
	MOVQ	BX, SP
	RET
