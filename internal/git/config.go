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

// harmless lists the extensions that do not affect abl, and the value for which that is true, ""
// for any.
var harmless = map[string]string{
	"noop": "", "noop-v1": "", "preciousobjects": "", "worktreeconfig": "", "relativeworktrees": "",
	"objectformat": "sha1", "refstorage": "files",
}

// unsupported has hints for extensions that abl does not support.
var unsupported = map[string]string{
	"objectformat": "abl reads SHA-1 objects only: choose a repository that uses them",
	"refstorage":   "abl reads refs in files only: git refs migrate --ref-format=files converts them",
	"partialclone": "abl needs a separate repository here: choose another directory",
}

// configOf reads the config and rejects repository formats that abl cannot write. A missing config
// means git's defaults. allowed is one more extension to accept.
func configOf(d gitdir.Dir, allowed string) (*config.Config, error) {
	path := d.Join("config")
	data, err := hostfs.Read(d.Path, "config", maxSteering)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, gitdir.Foreign("in %q: %v: restore the file that git creates there", d.Path, err)
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

// oneLine matches a section with its first option on the same line, which git accepts.
var oneLine = regexp.MustCompile(`(?m)^([ \t]*\[[^\]"\n]*(?:"(?:\\.|[^"\\\n])*")?[ \t]*\])[ \t]*([^\s#;])`)

// parseConfig parses a config of git. go-git's decoder accepts neither a byte order mark nor an
// option on the line of its section.
func parseConfig(data []byte) (*config.Config, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	c := config.New()
	err := config.NewDecoder(bytes.NewReader(oneLine.ReplaceAll(data, []byte("$1\n$2")))).Decode(c)
	return c, err
}
