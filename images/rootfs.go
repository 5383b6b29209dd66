package images

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Debian's minimal system without what a container never reads.
var leftOut = []string{
	"./dev/*", "./proc/*", "./sys/*", "./run/*", "./tmp/*", "./etc/hostname", "./etc/resolv.conf",
	"./var/cache/apt/*", "./var/cache/debconf/*-old", "./var/lib/apt/lists/*", "./var/log/*",
	"./usr/share/doc/*", "./usr/share/man/*", "./usr/share/info/*", "./usr/share/locale/*", "./debootstrap",
}

// writeConfig places the base's package settings, and its security updates
// from the same mirror.
func writeConfig(root string, files []entry) error {
	for _, f := range files {
		to, ok := map[string]string{"apt.conf": "etc/apt/apt.conf.d/01-abl", "dpkg.conf": "etc/dpkg/dpkg.cfg.d/01-abl"}[f.name]
		if !ok {
			continue
		}
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, f.data, 0o644); err != nil {
			return err
		}
	}
	sources := filepath.Join(root, "etc/apt/sources.list")
	text, err := os.ReadFile(sources)
	if err != nil {
		return err
	}
	return os.WriteFile(sources, []byte(withSecurity(string(text))), 0o644)
}

// withSecurity adds a mirror's security and update suites to a list that
// names the release alone. A mirror that is not laid out like Debian's own has
// none beside it, so its list stays as it is.
func withSecurity(list string) string {
	out := list
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "deb" || f[2] != suite || !strings.HasSuffix(f[1], "/debian") {
			continue
		}
		rest := strings.Join(f[3:], " ")
		out += fmt.Sprintf("deb %s %s-updates %s\n", f[1], suite, rest)
		out += fmt.Sprintf("deb %s-security %s-security %s\n", f[1], suite, rest)
	}
	return out
}

func (m *Maker) importTree(ctx context.Context, root, ref string, labels map[string]string) error {
	args := []string{"--numeric-owner", "--one-file-system", "-C", root}
	for _, p := range leftOut {
		args = append(args, "--exclude="+p)
	}
	cmd := command(ctx, "tar", append(args, "-c", ".")...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	checked := &endings{from: out, wait: func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("tar: %w: %s", err, visible(said.String()))
		}
		return nil
	}}
	err = m.Engine.Import(ctx, checked, ref, []string{
		"ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", `CMD ["/bin/sh"]`, labelLine(labels),
	})
	if ended := checked.close(); err == nil {
		err = ended
	}
	return err
}

// endings turns a writer's failure at its end into a read error, so that the
// engine never takes half an archive for a whole one.
type endings struct {
	from io.ReadCloser // no embedding: an HTTP client closes what it can, before wait has its turn
	wait func() error
	done bool
}

func (e *endings) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	if err != io.EOF {
		return n, err
	}
	if werr := e.close(); werr != nil {
		return n, werr
	}
	return n, io.EOF
}

func (e *endings) close() error {
	if e.done {
		return nil
	}
	e.done = true
	// After a reader that stopped early the writer would wait for ever.
	if err := e.from.Close(); err != nil {
		return err
	}
	return e.wait()
}
