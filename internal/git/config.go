package git

import (
	"bytes"
	"errors"
	"regexp"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// harmless are the extensions that do not change what abl reads and writes, and the
// values with which they do not, "" for any.
var harmless = map[string]string{
	"noop": "", "noop-v1": "", "preciousobjects": "", "worktreeconfig": "", "relativeworktrees": "",
	"objectformat": "sha1", "refstorage": "files",
}

// unsupported are the ways out for extensions that abl does not support.
var unsupported = map[string]string{
	"objectformat": "abl reads SHA-1 objects only: choose a repository that has them",
	"refstorage":   "abl reads refs in files only: git refs migrate --ref-format=files converts them",
	"partialclone": "abl needs a repository of its own here: choose another directory",
}

// configOf reads the config, and refuses formats that abl could not write. Without one git
// takes its defaults. allowed is one more extension that does no harm.
func configOf(d gitdir.Dir, allowed string) (*config.Config, error) {
	path := d.Join("config")
	data, err := hostfs.Read(d.Path, "config", maxSteering)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, gitdir.Foreign("in %q: %v: replace it by what git makes there", d.Path, err)
	}
	c, err := parseConfig(data)
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

// oneLine is a section that has its first option on the same line, as git allows.
var oneLine = regexp.MustCompile(`(?m)^([ \t]*\[[^\]"\n]*(?:"(?:\\.|[^"\\\n])*")?[ \t]*\])[ \t]*([^\s#;])`)

// parseConfig reads a config of git. go-git's decoder takes neither a byte order mark nor a section
// that has an option on the same line.
func parseConfig(data []byte) (*config.Config, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	c := config.New()
	err := config.NewDecoder(bytes.NewReader(oneLine.ReplaceAll(data, []byte("$1\n$2")))).Decode(c)
	return c, err
}
