package sandboxtest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"abl/internal/sandbox"
)

var userForm = regexp.MustCompile(`^\d+:\d+$`)

// check refuses the containers that the adapter of the real engine refuses.
func (e *Engine) check(b sandbox.ContainerConfig) error {
	switch {
	case b.Name == "" || b.Image == "":
		return errors.New("a container needs a name and an image")
	case len(b.Argv) == 0 && !b.Loose:
		return errors.New("command is missing")
	case b.Labels[sandbox.LabelProject] == "" || b.Labels[sandbox.LabelKind] == "":
		return fmt.Errorf("it lacks the label %s or %s", sandbox.LabelProject, sandbox.LabelKind)
	case b.Reach.Join != "" && len(b.Reach.Endpoints) > 0:
		return fmt.Errorf("it cannot both join %q and have endpoints of its own", b.Reach.Join)
	case b.Reach.Host && (b.Loose || b.Seals || b.Reach.Join != "" || len(b.Reach.Endpoints)+len(b.Mounts) > 0):
		return errors.New("a container with the network of the engine's machine may have no mounts, other networks and privileges")
	case e.Images != nil && !slices.Contains(e.Images, b.Image):
		return fmt.Errorf("%w: %q", sandbox.ErrNoImage, b.Image)
	}
	return errors.Join(checkUser(b), e.checkReach(b), e.checkMounts(b))
}

func checkUser(b sandbox.ContainerConfig) error {
	uid, _, _ := strings.Cut(b.User, ":")
	switch {
	case b.User == "" && b.Loose:
		return nil
	case !userForm.MatchString(b.User):
		return fmt.Errorf("user %q: want numeric \"uid:gid\" with a uid other than 0", b.User)
	case strings.Trim(uid, "0") == "":
		return fmt.Errorf("user %q: want a uid other than 0", b.User)
	}
	return nil
}

func (e *Engine) checkReach(b sandbox.ContainerConfig) error {
	egress := false
	for _, end := range b.Reach.Endpoints {
		n, ok := e.networks[end.Network]
		if end.Foreign { // the user's network, not created by this engine; it counts as egress
			egress = true
			continue
		}
		if !ok || n.Labels[sandbox.LabelProject] != b.Labels[sandbox.LabelProject] {
			return fmt.Errorf("network %q does not belong to this project", end.Network)
		}
		egress = egress || n.Egress
	}
	if b.Reach.Resolve && !egress {
		return errors.New("cannot resolve outside names without an egress")
	}
	return nil
}

func (e *Engine) checkMounts(b sandbox.ContainerConfig) error {
	for _, m := range b.Mounts {
		if m.What.IsVolume() {
			v, ok := e.volumes[m.Source]
			if !ok || v.Labels[sandbox.LabelProject] != b.Labels[sandbox.LabelProject] {
				return fmt.Errorf("volume %q does not belong to this project", m.Source)
			}
			continue
		}
		if !path.IsAbs(m.Source) || path.Clean(m.Source) != m.Source || !path.IsAbs(m.Target) {
			return fmt.Errorf("mount of %q at %q: want absolute paths without dots", m.Source, m.Target)
		}
	}
	return nil
}
