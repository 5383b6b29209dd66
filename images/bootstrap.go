package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Debian's minimal system without what a container never reads.
var leftOut = []string{
	"./dev/*", "./proc/*", "./sys/*", "./run/*", "./tmp/*", "./etc/hostname", "./etc/resolv.conf",
	"./var/cache/apt/*", "./var/cache/debconf/*-old", "./var/lib/apt/lists/*", "./var/log/*",
	"./usr/share/doc/*", "./usr/share/man/*", "./usr/share/info/*", "./usr/share/locale/*", "./debootstrap",
}

// cannotBootstrap says why this machine cannot make a base of its own, or nil.
func (m *Maker) cannotBootstrap(arch string) error {
	switch {
	case os.Geteuid() != 0:
		return errors.New("abl does not run as root, so that it cannot make one with debootstrap")
	case !isDebian(osRelease()):
		return errors.New("this machine is neither Debian nor Ubuntu, so that abl cannot make one with debootstrap")
	case arch != runtime.GOARCH:
		return fmt.Errorf("the engine is %s and this machine %s, so that abl cannot make one with debootstrap", arch, runtime.GOARCH)
	}
	return nil
}

func osRelease() string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	return string(text)
}

// isDebian reads os-release: Debian, Ubuntu and what says it is like them.
func isDebian(release string) bool {
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "ID" && key != "ID_LIKE" {
			continue
		}
		for _, id := range strings.Fields(strings.Trim(value, `"'`)) {
			if id == "debian" || id == "ubuntu" {
				return true
			}
		}
	}
	return false
}

// mirrorBase unpacks Debian's minimal system and imports it.
func (m *Maker) mirrorBase(ctx context.Context, s seen) (ref string, labels map[string]string, err error) {
	r, err := baseRecipe(s.arch)
	if err != nil {
		return "", nil, err
	}
	r.parent = fromMirror
	r = r.sealed(s.arch)
	labels = baseLabels(s, r, fromMirror)
	folder, err := os.MkdirTemp(m.tempDir(), "abl-base-")
	if err != nil {
		return "", nil, fmt.Errorf("cannot make a folder for the base: %w", err)
	}
	defer func() { err = errors.Join(err, m.removeTree(ctx, folder)) }()
	if err := m.bootstrap(ctx, folder); err != nil {
		return "", nil, &BuildError{Ref: r.ref, cause: err}
	}
	if err := writeConfig(folder, r.files); err != nil {
		return "", nil, fmt.Errorf("cannot write the base's settings: %w", err)
	}
	m.say("base: importing")
	if err := m.importTree(ctx, folder, r.ref, labels); err != nil {
		return "", nil, &BuildError{Ref: r.ref, cause: err}
	}
	return r.ref, labels, nil
}

// tempDir prefers the folder for large files: debootstrap refuses one mounted
// nodev or noexec, and a /tmp in memory often is.
func (m *Maker) tempDir() string {
	if m.TempDir != "" {
		return m.TempDir
	}
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() {
		return "/var/tmp"
	}
	return ""
}

func (m *Maker) bootstrap(ctx context.Context, folder string) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		m.say("base: installing debootstrap")
		if err := m.run(ctx, "apt-get", "update", "-q"); err != nil {
			return err
		}
		if err := m.run(ctx, "apt-get", "install", "-q", "-y", "--no-install-recommends", "debootstrap", "debian-archive-keyring"); err != nil {
			return err
		}
	}
	m.say("base: debootstrap %s, about a minute", suite)
	return m.run(ctx, "debootstrap", "--variant=minbase", "--force-check-gpg", suite, folder)
}

// aboutPackage matches what debootstrap says of each of a hundred packages.
var aboutPackage = regexp.MustCompile(`^I: (Retrieving|Validating|Extracting|Unpacking|Configuring) [a-z0-9]`)

// run shows each line of a command as progress and keeps the last ones for its error.
func (m *Maker) run(ctx context.Context, name string, args ...string) error {
	cmd := command(ctx, name, args...)
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	out := output{name: "base", say: func(string, ...any) {}}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			out.line(lines.Text())
			if !aboutPackage.MatchString(lines.Text()) {
				m.say("base: %s", clean(lines.Text()))
			}
		}
		io.Copy(io.Discard, reader)
	}()
	err := cmd.Run()
	writer.Close()
	<-drained
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.Join(out.tail, " | "))
	}
	return nil
}

// command ends with all its children when abl gives up.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
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

// removeTree leaves alone what a broken debootstrap left mounted below.
func (m *Maker) removeTree(ctx context.Context, folder string) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	out, err := command(late, "rm", "-rf", "--one-file-system", folder).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot remove %q: %w: %s", folder, err, visible(string(out)))
	}
	return nil
}
