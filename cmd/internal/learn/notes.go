package learn

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/orchestrator/learner"
)

// notes name the processes that run for a project, for stop.sh and for whoever
// comes after a run that was killed. A file is named after a process's number; its
// first line is when that was started, so that no later process of the number is
// taken for it, its second line whose it is.
type notes struct {
	here string // the directory that solutions is in
	what string // the project, from there
}

// runFolder holds them, in solutions.
const runFolder = ".run"

func (n notes) dir() string { return filepath.Join(n.here, learner.Folder, runFolder) }

func notesOf(here string, h learner.Home) notes {
	rel, err := filepath.Rel(here, h.Root)
	if err != nil {
		rel = h.Root
	}
	return notes{here, rel}
}

// add notes a process; kind goes before its number.
func (n notes) add(kind string, pid int) (forget func(), err error) {
	path := filepath.Join(n.dir(), kind+fmt.Sprint(pid))
	begun := begunAt(pid)
	if begun == "" {
		return func() {}, nil // it ended, or this is no Linux
	}
	err = errors.Join(hostfs.MkdirAll(n.here, filepath.Join(learner.Folder, runFolder)), hostfs.Write(path, []byte(begun+"\n"+n.what+"\n"), 0o644))
	return func() { os.Remove(path) }, err
}

// endOrphans ends what a run of the project that was killed left running: two
// agents must not write in one folder. The project's lock is held.
func (n notes) endOrphans() (ended []int, err error) {
	entries, err := hostfs.List(n.here, filepath.Join(learner.Folder, runFolder), maxNotes)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	for _, e := range entries {
		name := e.Name
		pid, numbered := strconv.Atoi(name)
		if numbered != nil {
			continue
		}
		const most = 4 << 10
		data, err := hostfs.Read(n.dir(), name, most)
		begun, whose, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
		if err != nil || whose != n.what {
			continue
		}
		if begun == begunAt(pid) {
			proc.Kill(pid)
			ended = append(ended, pid)
		}
		if err := os.Remove(filepath.Join(n.dir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ended, err
		}
	}
	return ended, err
}

const maxNotes = 10_000

// begunAt is when a process was started, as the kernel counts; "" when it is not
// there.
func begunAt(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return startOf(string(stat))
}

// startOf is the time in a process's stat at which it was started: the twentieth
// field after its name, which is in parentheses and may hold anything.
func startOf(stat string) string {
	const start = 19
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) <= start {
		return "unknown"
	}
	return f[start]
}
