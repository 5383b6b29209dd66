//go:build portable

package lab

// Portable is whether the tests take no engine for one on this machine itself.
const Portable = true
