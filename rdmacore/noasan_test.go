//go:build !asan

package rdmacore

const asan = false
