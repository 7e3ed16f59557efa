# The pointers to a thread's stack in memory and to its variables, which C cannot name.
	.text
	.globaltype __stack_pointer, i32

# Without shared memory, the linker gives variables by thread addresses as it does others, and code adds this to them. The
# linker's own __tls_base would be a constant 0.
	.globaltype __tls_base, i32
	.globl __tls_base
__tls_base:

	.globl set_variables
	.type set_variables,@function
set_variables:
	.functype set_variables (i32) -> ()
	local.get 0
	global.set __tls_base
	end_function

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
