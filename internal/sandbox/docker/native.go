//go:build !portable

package docker

// portable is whether this program holds no engine for one on this machine.
const portable = false
