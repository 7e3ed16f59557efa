// Package hostfuncs is the ABI between rdmarun and its guests. One table names every function and struct (Functions,
// Structs, Enums), and one file a subject implements them. The generator in gen makes the SDKs and the reference from
// the same table.
//
// # Style
//
//   - Import module "rdma"; parameters are i32 and i64; one i32 result, >= 0 a value or handle, < 0 a
//     negative Linux errno.  Anything else comes back through a pointer the guest gives.
//   - A pointer is an offset into the guest's linear memory. The host checks offset and length once, without
//     overflow. Outside memory the result is -EFAULT, and for a struct that is not aligned as compilers align it
//     -EINVAL. The alignment is 4 bytes, with 64-bit fields 8.
//   - A handle names an object of this instance: kind(4) | generation(11) | index(16), so never
//     negative.  One that is stale, of another kind or of another instance is -EBADF.
//   - Structs are little-endian, every byte of padding is a field, and their size is a multiple of 8.
//     One that may grow begins with struct_size, which the guest sets to the size it was compiled with.
//   - Functions and structs are only ever added to.  A break would be a new import module.  The bytes of a
//     field called reserved, which guests leave 0, may get other names.
//   - A call that may wait takes timeout_ns: 0 does not wait, -1 waits as long as the guest may run.
//
// # Lifetimes
//
// An Instance belongs to one guest. Only the goroutine that runs the guest uses it, except for RequestStop. Close
// frees what the guest left, children before parents, after the guest's last instruction. A region that a guest
// registers is a range of its linear memory itself. Each registration holds a reference to the mapping, so the
// provider never writes into unmapped memory.
package hostfuncs

//go:generate go run ./gen
