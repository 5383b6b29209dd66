package git

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"
	"abl/internal/proc"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// harmless lists the extensions that do not affect abl, and the value for which that is true, ""
// for any.
var harmless = map[string]string{
	"noop": "", "noop-v1": "", "preciousobjects": "", "worktreeconfig": "", "relativeworktrees": "",
	"objectformat": "sha1", "refstorage": "files",
}

// unsupported has hints for extensions that abl does not support.
var unsupported = map[string]string{
	"objectformat": "abl reads SHA-1 objects only: choose a repository that has them",
	"refstorage":   "abl reads refs in files only: git refs migrate --ref-format=files converts them",
	"partialclone": "abl needs a separate repository here: choose another directory",
}

// configOf reads the config and rejects repository formats that abl cannot write. A missing config
// means git's defaults. allowed is one more extension to accept.
func configOf(d gitdir.Dir, parse func([]byte) (*config.Config, error), allowed string) (*config.Config, error) {
	path := d.Join("config")
	data, err := hostfs.Read(d.Path, "config", maxSteering)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, gitdir.Foreign("in %q: %v: restore the file that git creates there", d.Path, err)
	}
	c, err := parse(data)
	if errors.Is(err, ErrNoGit) {
		return nil, err
	}
	if err != nil {
		return nil, gitdir.Foreign("%q cannot be read (%v): repair it", path, err)
	}
	for _, o := range c.Section("extensions").Options {
		key := strings.ToLower(o.Key)
		value, known := harmless[key]
		if key == allowed || known && (value == "" || value == o.Value) {
			continue
		}
		do := unsupported[key]
		if do == "" {
			do = "choose another directory, or convert the repository"
		}
		return nil, gitdir.Foreign("%q uses the extension %s = %s, which abl does not support; %s", path, o.Key, o.Value, do)
	}
	return c, nil
}

// parseOwn parses the config of a workspace, for which abl needs no git.
func parseOwn(data []byte) (*config.Config, error) {
	c := config.New()
	return c, config.NewDecoder(bytes.NewReader(data)).Decode(c)
}

// parseConfig parses a config of the user or of a submodule with the user's git, without the files
// that it includes. It reads nothing else of a repository.
func parseConfig(data []byte) (*config.Config, error) {
	ctx, cancel := context.WithTimeout(context.Background(), configTime)
	defer cancel()
	cmd := proc.Git(ctx, "/", "config", "--file=-", "--no-includes", "--null", "--list")
	cmd.Stdin = bytes.NewReader(data)
	out, err := output(cmd)
	c := config.New()
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		section, rest, _ := strings.Cut(key, ".")
		at := strings.LastIndex(rest, ".")
		c.AddOption(section, rest[:max(at, 0)], rest[at+1:], value)
	}
	return c, err
}

// configTime is the maximum time of git config.
const configTime = 10 * time.Second
