// Package config defines the settings of a project, with their schema and defaults, and reads them from
// .abl/config.yaml, the environment and flags. It reads the values of .env literally: keys contain "$"
// and "#", and a reader that expands "$" or cuts at "#" would make a valid key invalid.
package config

import (
	"time"

	"abl/internal/toolchain"
)

// Config is the content of .abl/config.yaml, with all defaults.
type Config struct {
	Version          int                `yaml:"version"`
	Directories      Directories        `yaml:"directories"`
	Source           SourceRepo         `yaml:"source"`
	Adopt            Adopt              `yaml:"adopt"`
	Publish          Publish            `yaml:"publish"`         // manual or auto, or {when: …, prefix: …}
	Remote           Remote             `yaml:"remote" json:"-"` // the name of a remote, or {name: …, lease: …}
	Notify           Notify             `yaml:"notify"`
	Agent            PerRole            `yaml:"agent"`  // one name for both roles, or {builder: …, verifier: …}
	Models           Models             `yaml:"models"` // each one name or a list (a fallback chain)
	Effort           PerRole            `yaml:"effort"` // low, medium, high or max; "" for the agent's own
	BuilderCommands  map[string]Command `yaml:"builder_commands"`
	VerifierCommands map[string]Command `yaml:"verifier_commands"`
	App              *App               `yaml:"app"` // nil: no app section
	Loop             Loop               `yaml:"loop"`
	Verify           Verify             `yaml:"verify"`
	Commit           Commit             `yaml:"commit"`
	Budget           Budget             `yaml:"budget"`
	Prices           Prices             `yaml:"prices"`
	Network          Network            `yaml:"network"`
	Limits           Limits             `yaml:"limits"`
	Toolchain        toolchain.Set      `yaml:"toolchain"` // in the images of the Builder and of the app
	Images           Images             `yaml:"images"`
	Agents           map[string]Agent   `yaml:"agents"`
}

// Directories are the workspaces, relative to the project. They do not overlap.
type Directories struct {
	Src   string `yaml:"src"`
	Tests string `yaml:"tests"`
}

// SourceRepo is the existing repository that a project works on.
type SourceRepo struct {
	Repo string `yaml:"repo"` // its work tree, relative to the project; "" for a source with a history of its own
	Dir  string `yaml:"dir"`  // the folder for the Builder and the app, "" for the root
}

// Adopt sets which parts of that repository the Builder sees.
type Adopt struct {
	Exclude  []string `yaml:"exclude"`  // paths in it that are left out of the Builder's clone
	Baseline string   `yaml:"baseline"` // on or off: start the app before the first call
}

// Publish sets when and how commits reach the user's repository.
type Publish struct {
	When    string `yaml:"when"`    // manual or auto
	Prefix  string `yaml:"prefix"`  // of the branches of phases, before "phaseN"
	Author  string `yaml:"author"`  // "NAME <EMAIL>" of the commits; "" for abl, with the user as co-author
	Signoff bool   `yaml:"signoff"` // the commits have a Signed-off-by trailer of the user
}

// Remote is the remote of the user's repository that holds the state of the phases.
type Remote struct {
	Name  string   `yaml:"name"`  // "" for none
	Lease Duration `yaml:"lease"` // without a push for so long, another machine may continue
}

// Notify is the command to run at the end of a phase.
type Notify struct {
	Command string `yaml:"command"` // a shell command on this machine, JSON on its standard input
}

// PerRole is one name for each role.
type PerRole = Both[string]

// Models are fallback chains; the first is used.
type Models = Both[Chain]

// Command is a declared command that abl-cmd runs by name.
type Command struct {
	Command     string   `yaml:"command"`
	Description string   `yaml:"description"`
	Output      string   `yaml:"output"`     // "shown": the Verifier sees its output, capped; otherwise only the exit code
	Background  bool     `yaml:"background"` // starts the system and stays
	Timeout     Duration `yaml:"timeout"`
}

// App is the system under test.
type App struct {
	Kind     string             `yaml:"kind"` // http, tcp or command
	Command  string             `yaml:"command"`
	Build    string             `yaml:"build"`   // compiles a commit once, for all starts; "" for none
	Prepare  string             `yaml:"prepare"` // installs dependencies before a start if a lock file or manifest changed; "" for none
	Probe    string             `yaml:"probe"`   // arguments of a program's run before the first call, "" for --help
	Port     int                `yaml:"port"`
	Ready    Ready              `yaml:"ready"`
	Env      map[string]string  `yaml:"env"`
	Services map[string]Service `yaml:"services"`
	Copy     string             `yaml:"copy"` // auto, overlay or tar
}

// Ready is the readiness probe.
type Ready struct {
	Path    string   `yaml:"path"`
	Port    int      `yaml:"port"` // services only
	Timeout Duration `yaml:"timeout"`
}

// Service is an additional container in the networks of the app and of the Builder.
type Service struct {
	Image      string            `yaml:"image"`      // either this or Dockerfile
	Dockerfile string            `yaml:"dockerfile"` // relative to the project; it extends abl's image
	Env        map[string]string `yaml:"env"`
	Files      map[string]string `yaml:"files"` // absolute path inside → file of the project
	Ready      Ready             `yaml:"ready"`
}

// Loop bounds a phase.
type Loop struct {
	MaxVerifierIterations int        `yaml:"max_verifier_iterations"`
	CallTimeout           Duration   `yaml:"call_timeout"`
	IdleTimeout           Duration   `yaml:"idle_timeout"`
	OutageBudget          Duration   `yaml:"outage_budget"`
	NoProgress            NoProgress `yaml:"no_progress"`
}

// NoProgress are the limits that end a round before its last iteration, 0 for none.
type NoProgress struct {
	Failed     int `yaml:"failed"`     // failed iterations in a row without a change; a plain number sets this
	Unverified int `yaml:"unverified"` // calls in a row in which the Verifier leaves the same contracts without a verdict
}

// Verify sets the conditions of a pass.
type Verify struct {
	Evidence     string   `yaml:"evidence"`      // required or off
	StrengthTime TestTime `yaml:"strength_time"` // for replays with altered responses; 0 for none
	AllowWeak    Chain    `yaml:"allow_weak"`    // contracts whose tests may be weak, or all
	AllowUnread  Chain    `yaml:"allow_unread"`  // contracts with a body that abl cannot read, or all
}

// Commit sets which files may be committed.
type Commit struct {
	AllowSecrets []string `yaml:"allow_secrets"` // names in .env whose values may be committed
}

// Budget limits the cost.
type Budget struct {
	Call    Cap `yaml:"call"`
	Phase   Cap `yaml:"phase"`
	Project Cap `yaml:"project"`
}

// Cap is a limit in tokens and US dollars; 0 means no limit.
type Cap struct {
	Tokens int64   `yaml:"tokens"`
	USD    float64 `yaml:"usd"`
}

// Network sets the hosts that containers can reach.
type Network struct {
	// registries (npm, pypi, go, crates, maven) and hosts that the Builder's tools and app.prepare reach
	Allow []Reachable `yaml:"allow"`
	// PEM file of more certificate authorities; relative to the project, or absolute
	CACert string `yaml:"ca_cert"`
	// address of the HTTP proxy, none, or "" for the environment's
	Proxy string `yaml:"proxy"`
	// CIDR for abl's /28 networks
	Pool string `yaml:"pool"`
	// engine or host: the network of builds of the project's images
	Builds string `yaml:"builds"`
	// an existing network of the engine for egress, instead of one that abl creates
	Egress string `yaml:"egress"`
}

// Limits bound the container of each role, and the data that it writes.
type Limits struct {
	Memory   Size    `yaml:"memory"`
	CPUs     float64 `yaml:"cpus"`
	Pids     int64   `yaml:"pids"`
	Requests int64   `yaml:"requests"` // to the provider, per call
	Disk     Size    `yaml:"disk"`     // that a call adds to its workspace; also the largest file, unless limits.output is larger
	Inodes   int64   `yaml:"inodes"`   // files and folders that a call adds to its workspace
	Output   Size    `yaml:"output"`   // that a call prints before abl kills it
	File     Size    `yaml:"file"`     // the largest file to commit
	Tmp      Size    `yaml:"tmp"`      // of /tmp, in memory
	Home     Size    `yaml:"home"`     // of the home directory, in memory
	Shm      Size    `yaml:"shm"`      // of /dev/shm
	Prepare  Size    `yaml:"prepare"`  // of /tmp and of the home directory during app.prepare and builds, each
}

// Images are the project's Dockerfiles, which extend abl's image.
type Images struct {
	Builder  Image `yaml:"builder"`
	Verifier Image `yaml:"verifier"`
	App      Image `yaml:"app"`
}

// Image is the Dockerfile of a container.
type Image struct {
	Dockerfile string `yaml:"dockerfile"` // relative to the project
}

// Agent has the settings of an agent. An agent with a command or acp is the user's own.
type Agent struct {
	// scripted: the scenario file, relative to the project
	Scenario string `yaml:"scenario"`
	// abl's agents: the login to use; plan is the user's subscription
	Login string `yaml:"login"`
	// abl's agents: more headers and query parameters for each request; $NAME is a variable of .env
	Headers map[string]string `yaml:"headers"`
	Query   map[string]string `yaml:"query"`
	// abl's agents: exact version of the program; "" for the tested one
	Version string `yaml:"version"`
	// abl's agents: command on this machine that prints the key, and its interval during a call
	KeyCommand string   `yaml:"key_command"`
	KeyEvery   Duration `yaml:"key_every"`
	// scripted and own agents: the provider that they may use, as the name of an agent
	Provider string `yaml:"provider"`
	// copilot: openai-chat for a server without OpenAI's Responses API; own agents: API of the model
	API string `yaml:"api"`
	// own agents with api: variable of the key, or none; address of the server, "" for the vendor's
	Key  string `yaml:"key"`
	Base string `yaml:"base"`
	// own agents: shell command in the role's workspace, with the prompt on standard input
	Command string `yaml:"command"`
	// own agents: shell command that starts an agent with the Agent Client Protocol
	ACP string `yaml:"acp"`
	// own agents: environment variables without secrets
	Env map[string]string `yaml:"env"`
	// own agents: path to the tokens in a JSON line of the output, such as result.usage
	Usage string `yaml:"usage"`
	// own agents: name of the agent whose image to use, or an image of a registry; "" for tools
	Image string `yaml:"image"`
	// own agents: npm packages with exact versions to add to the image; {arch} is x64 or arm64
	NPM string `yaml:"npm"`
	// own agents: model if models is not set
	Model string `yaml:"model"`
}

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Version:     1,
		Directories: Directories{Src: "src", Tests: ".abl/tests"},
		Publish:     Publish{When: "manual", Prefix: "abl/"},
		Remote:      Remote{Lease: Duration(10 * time.Minute)},
		Agent:       PerRole{Builder: "gemini", Verifier: "gemini"},
		Effort:      PerRole{Verifier: "high"},
		Loop: Loop{
			MaxVerifierIterations: 5,
			CallTimeout:           Duration(30 * time.Minute),
			IdleTimeout:           Duration(10 * time.Minute),
			OutageBudget:          Duration(4 * time.Hour),
			NoProgress:            NoProgress{Unverified: 2},
		},
		Adopt:   Adopt{Baseline: "on"},
		Verify:  Verify{Evidence: "required", StrengthTime: TestTime{Times: 3}},
		Network: Network{Pool: "10.231.0.0/16", Builds: "engine"},
		Limits: Limits{
			Memory:   4 << 30,
			CPUs:     2,
			Pids:     512,
			Requests: 500,
			Disk:     2 << 30,
			Inodes:   500_000,
			Output:   1 << 30,
			File:     50 << 20,
			Tmp:      512 << 20,
			Home:     256 << 20,
			Shm:      16 << 20,
			Prepare:  1 << 30,
		},
	}
}

// UnmarshalYAML sets the defaults of an app section.
func (a *App) UnmarshalYAML(read func(any) error) error {
	if a.Copy == "" {
		*a = App{Kind: "http", Copy: "auto", Ready: Ready{Timeout: Duration(time.Minute)}}
	}
	type plain App
	return read((*plain)(a))
}

// UnmarshalYAML sets the defaults of a service.
func (s *Service) UnmarshalYAML(read func(any) error) error {
	s.Ready.Timeout = Duration(time.Minute)
	type plain Service
	return read((*plain)(s))
}

// UnmarshalYAML sets the defaults of a declared command.
func (c *Command) UnmarshalYAML(read func(any) error) error {
	c.Timeout = Duration(10 * time.Minute)
	type plain Command
	return read((*plain)(c))
}

// Raise adds to every limit that is set. It reports whether there was one in tokens, or in dollars.
func (b *Budget) Raise(tokens int64, usd float64) (inTokens, inDollars bool) {
	for _, c := range []*Cap{&b.Call, &b.Phase, &b.Project} {
		if c.Tokens > 0 {
			c.Tokens, inTokens = c.Tokens+tokens, true
		}
		if c.USD > 0 {
			c.USD, inDollars = c.USD+usd, true
		}
	}
	return inTokens, inDollars
}

// NeedsPrices reports whether a budget is in dollars. It then needs the price of every model.
func (c *Config) NeedsPrices() bool {
	return c.Budget.Call.USD > 0 || c.Budget.Phase.USD > 0 || c.Budget.Project.USD > 0
}
