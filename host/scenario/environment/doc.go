// Package environment finds what a reader of two runs needs to know of where each took place: the machine, and the
// devices that cases ran on.
package environment
