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

// recipe defines how an image is built from its parent.
type recipe struct {
	name    string
	ref     string // abl/<name>:<hash12>
	inputs  string // the whole hash
	parent  string // reference of the base image, may be ""
	network bool   // the build needs a network
	stage   bool   // it downloads in a separate stage, which may contain certificates and is removed
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

// hash returns the hash of the inputs that determine the image's content. Certificates and proxies
// do not.
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

// embedded returns the files of a build context that is embedded in abl.
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

// fetching returns a recipe with a stage that downloads.
func fetching(name, parent string, args map[string]string) recipe {
	files := append(embedded(name), embedded("fetch")...)
	return recipe{name: name, parent: parent, network: true, stage: true, args: args, files: files}
}

// npmArch converts an engine's architecture to the name in npm packages.
var npmArch = map[string]string{"amd64": "x64", "arm64": "arm64"}

// toolsRecipe returns the recipe of the image that all others are based on: Node.js, npm and abl's
// tools.
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

// toolRecipe returns the recipe of a layer with a tool of a project. The layer is below the agents,
// so that images of agents, apps and other projects share it.
func toolRecipe(t toolchain.Tool, below, arch string) recipe {
	var r recipe
	switch t.Name {
	case "go":
		r = fetching(t.Name, below, map[string]string{
			"GO_VERSION": t.Version, "GO_PIN": t.Pin, "GO_SUM": t.Sums[arch], "GO_ARCH": arch,
		})
	case "node":
		r = fetching(t.Name, below, map[string]string{"NODE_PACKAGE": nodePackage(t.Version, arch)})
	default:
		r = recipe{
			parent:  below,
			network: true,
			files:   embedded("debian"),
			args: map[string]string{
				"TOOL_VERSION": t.Version, "TOOL_SUITE": t.Suite, "TOOL_PACKAGES": t.Packages, "TOOL_CHECK": t.Check,
			},
		}
	}
	r.name = t.Name + "-" + t.Version
	return r.sealed(arch)
}

// pin is an npm package at one version. Its name may contain {version} and {arch}.
type pin struct{ name, version string }

func (p pin) of(arch string) string {
	return strings.NewReplacer("{version}", p.version, "{arch}", arch).Replace(p.name)
}

// agentPackages has the package of each agent's program. The readers in roles/agent support the
// output of these versions.
var agentPackages = map[string]pin{
	"claude":  {"@anthropic-ai/claude-code-linux-{arch}@{version}", "2.1.332"},
	"codex":   {"@openai/codex@{version}-linux-{arch}", "0.171.0"},
	"copilot": {"@github/copilot-linux-{arch}@{version}", "1.0.102"},
	"gemini":  {"@google/gemini-cli@{version}", "0.61.0"},
}

// Version returns the version of an agent's program, "" for an agent without one.
func Version(agent string) string { return agentPackages[agent].version }

// Programs lists the agents whose programs have versions, sorted.
func Programs() []string { return slices.Sorted(maps.Keys(agentPackages)) }

// Agents returns all values of Want.Agent, sorted.
func Agents() []string {
	names := append(slices.Collect(maps.Keys(agentPackages)), Tools)
	slices.Sort(names)
	return names
}

// Usual returns the images to build by default. The others have a few hundred megabytes each; abl
// builds them when a role needs them.
func Usual() []string { return []string{"gemini", Tools} }

// seen describes the images on an engine, as input of plan.
type seen struct {
	arch   string
	labels map[string]map[string]string // by reference
	sizes  map[string]int64             // bytes of all images, by reference
	recipe string                       // hash of the base's recipe in this version of abl

	foreign string // id of a wanted image of a registry, may be ""
}

// base returns the base to build on: one that the engine has, or that one of its images is based
// on. A base from a registry is preferred.
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

// mirrorBase is the image that scripts/base.sh imports, and fromMirror the origin of a base on it.
const (
	mirrorBase = "abl/debian:" + suite
	fromMirror = "mirror"
)

// baseRecipe returns the recipe of the base, without the image that it is based on.
func baseRecipe(arch string) recipe {
	args := map[string]string{"registry": registryBase, "suite": suite}
	return recipe{name: "base", network: true, args: args, files: embedded("base")}.sealed(arch)
}

// layersFor returns the chain of images from the base to an agent's image, without the helper.
func layersFor(s seen, want Want) ([]recipe, error) {
	agent, set := want.Agent, want.Toolchain
	base := baseRecipe(s.arch)
	if ref, _, ok := s.base(); ok {
		base.ref = ref
	}
	all := []recipe{base, toolsRecipe(base.ref, s.arch)}
	for _, t := range set.Tools() {
		if t.Name != "node" || t.Version != nodeVersion { // the tools contain this version
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

// agentChain returns the images below the layers of the project and of the helper.
func agentChain(s seen, want Want) ([]recipe, error) {
	if isForeign(want.Agent) {
		r := recipe{
			name:   foreignImage,
			parent: want.Agent,
			args:   map[string]string{"IMAGE_ID": s.foreign},
			files:  embedded(foreignImage),
		}
		return []recipe{r.sealed(s.arch)}, nil
	}
	c, err := layersFor(s, want)
	if err == nil && want.NPM != "" {
		args := map[string]string{"AGENT_PACKAGE": strings.ReplaceAll(want.NPM, "{arch}", npmArch[s.arch])}
		c = append(c, fetching(npmImage, c[len(c)-1].ref, args).sealed(s.arch))
	}
	return c, err
}

// isForeign reports whether a name is a reference of an image, not the name of an agent.
func isForeign(image string) bool { return strings.ContainsAny(image, ":/@") }

// chain returns the images of a want, from the base to the helper's layer. A service has no such
// layer, which would replace the image's command.
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

// labels returns the labels of the image, in addition to inherited ones.
func (r recipe) labels() map[string]string {
	return map[string]string{LabelImage: r.name, LabelInputs: r.inputs}
}

// labelLine returns the Dockerfile instruction that sets labels. For abl's names, digests and
// hashes %q quotes as Dockerfiles do.
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

// header returns a tar header without times and owners, so that equal contexts have equal bytes.
func (e entry) header() *tar.Header {
	h := &tar.Header{
		Name:     e.name,
		Mode:     int64(e.mode.Perm()),
		Size:     int64(len(e.data)),
		Typeflag: tar.TypeReg,
		ModTime:  time.Unix(0, 0),
		Format:   tar.FormatPAX,
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
