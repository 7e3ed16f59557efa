# The pointer to a thread's stack in memory, which C cannot name.
	.text
	.globaltype __stack_pointer, i32

	.globl stack_pointer
	.type stack_pointer,@function
stack_pointer:
	.functype stack_pointer () -> (i32)
	global.get __stack_pointer
	end_function

	.globl set_stack_pointer
	.type set_stack_pointer,@function
set_stack_pointer:
	.functype set_stack_pointer (i32) -> ()
	local.get 0
	global.set __stack_pointer
	end_function
