//go:build portable

package lab

// Portable reports whether the tests treat every engine as remote.
const Portable = true
