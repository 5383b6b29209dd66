// Package workspace keeps the git history of a role's directory: it takes
// snapshots of what an agent left there, without trusting a byte of it, and
// without ever leaving the history half written.
//
// An agent's tree is walked by hand (package scan) and its objects are written
// by hand (package gitobj), because go-git's own Worktree hangs on a FIFO,
// stops at an odd name, trusts file times and writes refs and the index in
// place. go-git reads the objects and the config of adopted repositories.
package workspace
