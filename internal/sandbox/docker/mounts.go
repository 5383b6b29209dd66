package docker

import (
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/mount"

	"abl/internal/sandbox"
)

// mounts never becomes HostConfig.Binds: those make a missing source as root
// on the host, and a colon in a path breaks them.
func mounts(all []sandbox.Mount) (out []mount.Mount) {
	for _, m := range all {
		to := mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly || alwaysReadOnly(m.What)}
		if m.What.IsVolume() {
			to.Type = mount.TypeVolume
			// An image's files stay out of it, but a door has the mode of the image's.
			to.VolumeOptions = &mount.VolumeOptions{NoCopy: m.What != sandbox.Door}
		} else {
			// Read-only does not reach the file systems mounted below the source, so they are left out.
			to.BindOptions = &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: to.ReadOnly}
		}
		out = append(out, to)
	}
	return out
}

// alwaysReadOnly holds whatever a caller forgot to say.
func alwaysReadOnly(w sandbox.What) bool {
	switch w {
	case sandbox.GitDir, sandbox.Specs, sandbox.CallIn, sandbox.Empty:
		return true
	}
	return false
}

// tmpfs gives each target its options in the form of mount(8).
func tmpfs(box sandbox.Box) map[string]string {
	if len(box.Tmpfs) == 0 {
		return nil
	}
	out := make(map[string]string, len(box.Tmpfs))
	for _, t := range box.Tmpfs {
		out[t.Target] = tmpfsOptions(t, box.User)
	}
	return out
}

func tmpfsOptions(t sandbox.Tmpfs, user string) string {
	o := []string{"rw", "nosuid", "nodev"}
	if t.Exec {
		o = append(o, "exec") // the engine's own default is noexec
	} else {
		o = append(o, "noexec")
	}
	if t.Size > 0 {
		o = append(o, fmt.Sprintf("size=%d", t.Size))
	}
	if t.Inodes > 0 {
		o = append(o, fmt.Sprintf("nr_inodes=%d", t.Inodes))
	}
	if t.Mode != "" {
		o = append(o, "mode="+t.Mode)
	}
	if uid, gid, ok := strings.Cut(user, ":"); ok && t.Owned {
		o = append(o, "uid="+uid, "gid="+gid)
	}
	return strings.Join(o, ",")
}
