package images

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"abl/internal/toolchain"
)

// recipe is how one image is made out of its parent.
type recipe struct {
	name    string
	ref     string // abl/<name>:<hash12>
	inputs  string // the whole hash
	parent  string // reference of the image it stands on, "" for none
	network bool   // making it reaches out
	stage   bool   // it downloads in a stage of its own, which may hold certificates and is removed
	args    map[string]string
	files   []entry // the build context, sorted by name
}

// dockerfile returns the text of the recipe's Dockerfile.
func (r recipe) dockerfile() string {
	for _, f := range r.files {
		if f.name == dockerfileName {
			return string(f.data)
		}
	}
	return ""
}

// hash covers all that decides what the image will hold. Certificates and
// proxies are no part of it: they change the way, not what arrives.
func (r recipe) hash(arch string) string {
	h := sha256.New()
	fmt.Fprintf(h, "name %q\nparent %q\narch %q\n", r.name, r.parent, arch)
	for _, k := range slices.Sorted(maps.Keys(r.args)) {
		fmt.Fprintf(h, "arg %q %q\n", k, r.args[k])
	}
	for _, f := range r.files {
		fmt.Fprintf(h, "file %q %o %q %s\n", f.name, f.mode, f.link, f.sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sealed names the recipe by its hash.
func (r recipe) sealed(arch string) recipe {
	slices.SortFunc(r.files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	r.inputs = r.hash(arch)
	r.ref = "abl/" + r.name + ":" + r.inputs[:12]
	return r
}

// embedded is the build context of that name out of the program itself.
func embedded(name string) (files []entry) {
	folder := path.Join("context", name)
	found, err := contexts.ReadDir(folder)
	for _, f := range found {
		data, rerr := contexts.ReadFile(path.Join(folder, f.Name()))
		err = errors.Join(err, rerr)
		files = append(files, bytesEntry(f.Name(), 0o644, data))
	}
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return files
}

// fetching is a recipe with a stage that downloads.
func fetching(name, parent string, args map[string]string) recipe {
	files := append(embedded(name), embedded("fetch")...)
	return recipe{name: name, parent: parent, network: true, stage: true, args: args, files: files}
}

// npmArch is what npm packages call an engine's architecture.
var npmArch = map[string]string{"amd64": "x64", "arm64": "arm64"}

func toolsRecipe(base, arch string) recipe {
	node := nodePackage(nodeVersion, arch)
	args := map[string]string{
		"NODE_PACKAGE": node, "NODE_SUM": packageSums[node],
		"NPM_PACKAGE": npmPackage, "NPM_SUM": packageSums[npmPackage],
	}
	return recipe{name: Tools, parent: base, network: true, stage: true, args: args, files: embedded(Tools)}.sealed(arch)
}

func nodePackage(version, arch string) string { return "node-linux-" + npmArch[arch] + "@" + version }

func agentRecipe(agent, version, tools, arch string) recipe {
	p := agentPackages[agent]
	p.version = cmp.Or(version, p.version)
	args := map[string]string{"AGENT_PACKAGE": p.of(npmArch[arch])}
	return fetching(agent, tools, args).sealed(arch)
}

// toolRecipe is a layer with one of a project's tools. It is below the agents, so that
// their images, the app's and all projects share it.
func toolRecipe(t toolchain.Tool, below, arch string) recipe {
	r := recipe{parent: below, network: true, files: embedded(t.Name)}
	switch t.Name {
	case "go":
		r = fetching(t.Name, below, map[string]string{
			"GO_VERSION": t.Version, "GO_PIN": t.Pin, "GO_SUM": t.Sums[arch], "GO_ARCH": arch,
		})
	case "node":
		r = fetching(t.Name, below, map[string]string{"NODE_PACKAGE": nodePackage(t.Version, arch)})
	default:
		r.args = map[string]string{"PYTHON_VERSION": t.Version, "PYTHON_SUITE": t.Suite}
	}
	r.name = t.Name + "-" + t.Version
	return r.sealed(arch)
}

// pin is an npm package at one version. In its name {version} stands for that, and
// {arch} for the architecture.
type pin struct{ name, version string }

func (p pin) of(arch string) string {
	return strings.NewReplacer("{version}", p.version, "{arch}", arch).Replace(p.name)
}

// agentPackages are the agents that have an image of their own. The readers in
// roles/agent know the output of these versions.
var agentPackages = map[string]pin{
	"claude":  {"@anthropic-ai/claude-code-linux-{arch}@{version}", "2.1.332"},
	"codex":   {"@openai/codex@{version}-linux-{arch}", "0.171.0"},
	"copilot": {"@github/copilot-linux-{arch}@{version}", "1.0.102"},
	"gemini":  {"@google/gemini-cli@{version}", "0.61.0"},
}

// Version is that of an agent's program, "" for an agent that needs none.
func Version(agent string) string { return agentPackages[agent].version }

// Programs lists the agents whose programs have versions, sorted.
func Programs() []string { return slices.Sorted(maps.Keys(agentPackages)) }

// Agents names every Want.Agent, sorted.
func Agents() []string {
	names := append(slices.Collect(maps.Keys(agentPackages)), Tools)
	slices.Sort(names)
	return names
}

// Usual are those that are made when nobody names any: of the others each is a
// few hundred megabytes, and made when a role first asks for it.
func Usual() []string { return []string{"gemini", Tools} }

// seen is what an engine has, as far as planning needs it.
type seen struct {
	arch   string
	labels map[string]map[string]string // by reference
	sizes  map[string]int64             // bytes of all images, by reference
	recipe string                       // hash of how this abl makes a base

	foreign string // id of the image of a registry that is wanted, "" for none
}

// base finds the base to build upon: the one that is there, or the one that
// something still there was built upon. A base out of a registry goes first.
func (s seen) base() (ref, origin string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(s.labels)) {
		l := s.labels[name]
		if l[labelRecipe] != s.recipe || l[labelBase] == "" {
			continue
		}
		if !ok || origin == fromMirror && l[labelOrigin] != fromMirror {
			ref, origin, ok = l[labelBase], l[labelOrigin], true
		}
	}
	return ref, origin, ok
}

// mirrorBase is Debian's minimal system as scripts/base.sh imports it, and
// fromMirror the origin of a base upon it.
const (
	mirrorBase = "abl/debian:" + suite
	fromMirror = "mirror"
)

// baseRecipe is what this abl does to make a base; where it comes from is
// added when it is known.
func baseRecipe(arch string) recipe {
	args := map[string]string{"registry": registryBase, "suite": suite}
	return recipe{name: "base", network: true, args: args, files: embedded("base")}.sealed(arch)
}

// layersFor returns the chain from the base, one known by reference or one still to be
// made, up to an agent's image, without the helper.
func layersFor(s seen, want Want) ([]recipe, error) {
	agent, set := want.Agent, want.Toolchain
	base := baseRecipe(s.arch)
	if ref, _, ok := s.base(); ok {
		base.ref = ref
	}
	all := []recipe{base, toolsRecipe(base.ref, s.arch)}
	for _, t := range set.Tools() {
		if t.Name != "node" || t.Version != nodeVersion { // the tools have that one
			all = append(all, toolRecipe(t, all[len(all)-1].ref, s.arch))
		}
	}
	switch {
	case agent == Tools:
		return all, nil
	case Version(agent) == "":
		return nil, fmt.Errorf("cannot make an image for agent %q: abl has one for %s", agent, strings.Join(Agents(), ", "))
	}
	return append(all, agentRecipe(agent, want.Version, all[len(all)-1].ref, s.arch)), nil
}

// agentChain is what the layers of a project and of the helper are made on.
func agentChain(s seen, want Want) ([]recipe, error) {
	if isForeign(want.Agent) {
		r := recipe{name: foreignImage, parent: want.Agent, args: map[string]string{"IMAGE_ID": s.foreign},
			files: embedded(foreignImage)}
		return []recipe{r.sealed(s.arch)}, nil
	}
	c, err := layersFor(s, want)
	if err == nil && want.NPM != "" {
		args := map[string]string{"AGENT_PACKAGE": strings.ReplaceAll(want.NPM, "{arch}", npmArch[s.arch])}
		c = append(c, fetching(npmImage, c[len(c)-1].ref, args).sealed(s.arch))
	}
	return c, err
}

// isForeign reports whether an image is one of a registry rather than the name of an agent.
func isForeign(image string) bool { return strings.ContainsAny(image, ":/@") }

// chain is everything that a want stands on, from the base up to the helper's layer. A service
// has none: that takes away what an image starts.
func chain(s seen, want Want, helper entry) ([]recipe, error) {
	c, err := agentChain(s, want)
	if err != nil {
		return nil, err
	}
	if want.Dockerfile != "" {
		r, err := projectRecipe(want.Dockerfile, c[len(c)-1].ref)
		if err != nil {
			return nil, err
		}
		c = append(c, r.sealed(s.arch))
	}
	if want.Service {
		return c, nil
	}
	return append(c, runRecipe(c[len(c)-1], helper).sealed(s.arch)), nil
}

// labels are what an image of this recipe carries beside what it inherits.
func (r recipe) labels() map[string]string {
	return map[string]string{LabelImage: r.name, LabelInputs: r.inputs}
}

// labelLine is the Dockerfile instruction that sets labels. Names and values
// are abl's own words, digests and hashes, so that %q quotes as Dockerfiles do.
func labelLine(labels map[string]string) string {
	line := "LABEL"
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		line += fmt.Sprintf(" %s=%q", k, labels[k])
	}
	return line
}

// entry is one member of a build context: a file, a link or a folder.
type entry struct {
	name string
	mode fs.FileMode // permissions; fs.ModeDir for a folder
	link string      // target of a symbolic link
	data []byte
	sum  string // hex SHA-256 of the data
}

func bytesEntry(name string, mode fs.FileMode, data []byte) entry {
	sum := sha256.Sum256(data)
	return entry{name: name, mode: mode, data: data, sum: hex.EncodeToString(sum[:])}
}

func dirEntry(name string, perm fs.FileMode) entry {
	return entry{name: name, mode: perm | fs.ModeDir}
}

func linkEntry(name, target string) entry { return entry{name: name, mode: 0o777, link: target} }

// header says nothing of times and owners, so that equal contexts are equal bytes.
func (e entry) header() *tar.Header {
	h := &tar.Header{
		Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.data)),
		Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
	switch {
	case e.mode.IsDir():
		h.Name, h.Typeflag = e.name+"/", tar.TypeDir
	case e.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	}
	return h
}

// pack writes the entries as a tar archive.
func pack(w io.Writer, files []entry) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		err := tw.WriteHeader(f.header())
		if err == nil {
			_, err = tw.Write(f.data)
		}
		if err != nil {
			return fmt.Errorf("cannot pack %q: %w", f.name, err)
		}
	}
	return tw.Close()
}
