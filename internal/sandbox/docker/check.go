package docker

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"abl/internal/sandbox"
)

var userForm = regexp.MustCompile(`^(\d{1,10}):(\d{1,10})$`)

// check refuses what no box may be. It is the last look before an engine that
// does as it is told, so it repeats what callers should have seen to.
func check(box sandbox.Box) error {
	if box.Name == "" || box.Image == "" {
		return fmt.Errorf("a box needs a name and an image")
	}
	if len(box.Argv) == 0 && !box.Loose {
		return fmt.Errorf("it has no command")
	}
	if box.Labels[sandbox.LabelProject] == "" || box.Labels[sandbox.LabelKind] == "" {
		return fmt.Errorf("it lacks the label %s or %s, without which it could not be swept", sandbox.LabelProject, sandbox.LabelKind)
	}
	if box.Reach.Join != "" && len(box.Reach.Endpoints) > 0 {
		return fmt.Errorf("it cannot both join %q and have endpoints of its own", box.Reach.Join)
	}
	if box.Term && box.Stdin {
		return fmt.Errorf("its standard input cannot be both a terminal's and fed")
	}
	if err := checkUser(box); err != nil {
		return err
	}
	if box.Seals && (box.Loose || box.Reach.Join != "" || len(box.Mounts) > 0) {
		return fmt.Errorf("it would close a network that is not its own, or has something to write as root")
	}
	return checkPlaces(box)
}

// checkUser keeps uid 0 out: what it leaves in a bind mount is root's on the host.
func checkUser(box sandbox.Box) error {
	if box.User == "" && box.Loose {
		return nil // the image's own user
	}
	parts := userForm.FindStringSubmatch(box.User)
	if parts == nil {
		return fmt.Errorf("user %q: want \"uid:gid\" in numbers", box.User)
	}
	if strings.Trim(parts[1], "0") == "" {
		return fmt.Errorf("user %q: uid 0 is refused", box.User)
	}
	return nil
}

func checkPlaces(box sandbox.Box) error {
	for _, m := range box.Mounts {
		if !clean(m.Target) || m.Source == "" || !isVolume(m.What) && !clean(m.Source) {
			return fmt.Errorf("mount of %q at %q: want absolute paths without dots", m.Source, m.Target)
		}
	}
	for _, t := range box.Tmpfs {
		if !clean(t.Target) || strings.Contains(t.Mode, ",") {
			return fmt.Errorf("tmpfs at %q: want an absolute path without dots and an octal mode", t.Target)
		}
	}
	return nil
}

func clean(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }
