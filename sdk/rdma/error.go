package rdma

import "unsafe"

// Error is the failure of a host function.
type Error struct {
	Function string // of the ABI, for example "create_ep"
	Errno    Errno
	Text     string // the host's sentence
}

func (e *Error) Error() string {
	if e.Text == "" {
		return e.Function + ": " + e.Errno.String()
	}
	return e.Function + ": " + e.Text
}

// Unwrap is the errno.
func (e *Error) Unwrap() error { return e.Errno }

// check turns a result into an error.
func check(function string, result int32) error {
	if result >= 0 {
		return nil
	}
	text := make([]byte, 512)
	n := abiErrorText(unsafe.Pointer(&text[0]), uint32(len(text)))
	if n == -int32(ENOSYS) { // the stubs of other systems
		n = int32(copy(text, "only a guest of rdmarun has host functions: build with GOOS=wasip1 GOARCH=wasm"))
	}
	return &Error{Function: function, Errno: Errno(-result), Text: string(text[:max(n, 0)])}
}

// handle turns a result into a handle.
func handle(function string, result int32) (Handle, error) {
	if err := check(function, result); err != nil {
		return 0, err
	}
	return Handle(result), nil
}

func pointer(text string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(text)), uint32(len(text))
}
