package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"abl/internal/child"
)

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
		return "", nil, notMade(ctx, r.ref, err)
	}
	if err := writeConfig(folder, r.files); err != nil {
		return "", nil, fmt.Errorf("cannot write the base's settings: %w", err)
	}
	m.say("base: importing")
	if err := m.importTree(ctx, folder, r.ref, labels); err != nil {
		return "", nil, notMade(ctx, r.ref, err)
	}
	return r.ref, labels, nil
}

func notMade(ctx context.Context, ref string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &BuildError{Ref: ref, cause: err}
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
	args := []string{"--variant=minbase", "--force-check-gpg", suite, folder}
	if mirror := m.env("ABL_DEBIAN_MIRROR"); mirror != "" {
		args = append(args, strings.TrimRight(mirror, "/"))
	}
	return m.run(ctx, "debootstrap", args...)
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
	cmd := child.Command(ctx, name, args...)
	cmd.Env = append(cmd.Env, "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
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
