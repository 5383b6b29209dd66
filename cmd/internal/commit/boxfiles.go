package commit

import (
	"archive/tar"
	"errors"
	"io"
	"strings"

	"abl/internal/hostfs"
	"abl/orchestrator/codecommit"
)

// copy writes the project as a tar stream for the box: all of it but what is
// nobody's business there, and as the property of the box's user.
func (y *yard) copy(to io.Writer, as string) error {
	from, whole := io.Pipe()
	go func() { whole.CloseWithError(hostfs.Tar(whole, as, y.root, ".git", codecommit.ConfigDir)) }()
	defer from.Close()
	in, out := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if y.withheld(strings.TrimSuffix(strings.TrimPrefix(h.Name, as+"/"), "/")) {
			continue
		}
		h.Uid, h.Gid = y.builds.UID, y.builds.GID
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}

// withheld says whether a build in a box does not get to see a path: logs, keys,
// repositories and what .env files hold.
func (y *yard) withheld(name string) bool {
	_, logs := y.logDir()
	for _, dir := range []string{"logs", logs, y.profile.Stage} {
		if dir != "" && (name == dir || strings.HasPrefix(name, dir+"/")) {
			return true
		}
	}
	for _, file := range y.profile.Keys {
		if name == file {
			return true
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".env") || part == ".git" {
			return true
		}
	}
	return false
}
