package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"abl/internal/hostfs"
	"abl/internal/wording"
)

// noteBoot keeps the boot id: one that is kept already only when it may be replaced.
func (l *Loop) noteBoot(replace bool) error {
	path := l.Project.Boot()
	kept, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), 100)
	now := hostfs.BootID()
	if now == "" || string(kept) == now || !replace && !errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	return hostfs.Write(path, []byte(now), 0o644)
}

// afterBoot restores committed files of the source that a power cut took: git's objects are synced
// before a commit, the files of the work tree are not. Without a start of the machine since the last
// look nothing is restored, and what differs is the user's change.
func (t turn) afterBoot(ctx context.Context) error {
	path := t.Project.Boot()
	kept, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), 100)
	now := hostfs.BootID()
	if err != nil || now == "" || string(kept) == now {
		return nil
	}
	restored, err := t.Src.Restore(ctx, t.Project.Torn())
	if err != nil {
		return err
	}
	if len(restored) > 0 {
		t.note(fmt.Sprintf("the machine was started since the last call, and %s in the source, %.200q first, had lost content that was committed: "+
			"restored from the commit; what they held is in %s", wording.Count(len(restored), "file"), restored[0], t.Project.Rel(t.Project.Torn())))
	}
	return t.noteBoot(true)
}
