//go:build !portable

package docker

// portable is set in programs without an image of abl's helpers for the engine on this machine.
const portable = false
