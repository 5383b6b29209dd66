package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"abl/internal/hostfs"
	"abl/internal/wording"
)

// noteBoot records the machine's boot id. It overwrites an earlier one only if replace is true.
func (l *Loop) noteBoot(replace bool) error {
	path := l.Project.Boot()
	kept, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), 100)
	now := hostfs.BootID()
	if now == "" || string(kept) == now || !replace && !errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	return hostfs.Write(path, []byte(now), 0o644)
}

// afterBoot restores committed files of the source that a power cut emptied: git's objects are
// synced before a commit, the files of the work tree are not. Without a restart of the machine
// since the last check it restores nothing, because differences are the user's changes.
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
		t.note(fmt.Sprintf("the machine was restarted since the last call, and %s in the source, first %.200q, "+
			"had lost committed content: "+
			"abl restored the commit; the content before that is in %s", wording.Count(len(restored),
			"file"), restored[0], t.Project.Rel(t.Project.Torn())))
	}
	return t.noteBoot(true)
}
