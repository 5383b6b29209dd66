//go:build !linux || portable

package docker

// release is that of no engine: each is in a virtual machine, or elsewhere.
func release() string { return "" }
