package boundary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
	"abl/roles"
)

// Containers describes the containers of a project: their labels, their user, their limits and their
// networks. Each role, and the app, has a holder: a small container whose network namespace the
// role's calls join, so that a call has the network access of its role. Joining a namespace
// makes a call start in less than half the time of creating endpoints (docs/architecture.md).
type Containers struct {
	Engine   sandbox.Engine
	ID       string // the project's id, for names and labels
	State    string // LabelState of containers, networks and volumes, "" for no label
	Dir      string // LabelDir of them, "" for no label
	Phase    int
	UID, GID int             // user of agents, apps and tests, never 0
	Root     bool            // abl is root: UID owns a container's files, afterwards the user does
	Limits   sandbox.Limits  // of agents, apps and tests
	Disk     roles.DiskQuota // of the copies that apps, tests and builds run on
	Spaces   roles.Spaces
	Output   int64             // bytes that tests or a build may print, 0 for any number
	Helper   string            // the image of abl's own programs
	Pool     string            // CIDR of abl's networks
	Egress   string            // an existing network for the gateways' egress, "" for one of abl's own
	Gated    map[string]bool   // roles whose calls have a gateway
	Weak     bool              // the user allows networks that reach the engine's machine
	Inodes   bool              // the engine's kernel is this machine's and has the same inode numbers
	Life     time.Duration     // after which a holder ends without abl, 0 is a day
	Safe     *redact.Sanitizer // removes secrets from the records of a container
	// Port is the app's port, the only one that its tests reach. For a program it is the
	// broker's port. Without an app section it is 0, and the tests share the app's network.
	Port     int
	Services bool // the app has services, and so a network
	Trial    bool // the Builder's calls have such services, too

	mu       sync.Mutex
	server   *HostServer // on the engine's machine; nil before hostServer
	Watching sync.Map    // app container's name → function that ends the watch of its disk use
}

// The places. Each has its own network access.
const (
	PlaceBuilder  = "builder"
	PlaceVerifier = "verifier"
	PlaceApp      = "app"

	PlaceService = "svc-"   // followed by the service's name: on the app's network
	placeTrial   = "trial-" // followed by the service's name: for the Builder's calls
)

// toolUser differs from the user of every role, so that no role can signal its holder.
const toolUser = "10009:10009"

// ContainerName returns the engine-wide name of a container of the project.
func ContainerName(id, key string) string { return sandbox.Name(id, key) }

func (s *Containers) Name(key string) string { return ContainerName(s.ID, key) }

// Network returns the name of one of the project's networks.
func (s *Containers) Network(what string) string { return s.Name("net-" + what) }

// Labels returns the labels of a container, network or volume.
func (s *Containers) Labels(kind, role, call string, deadline time.Time) map[string]string {
	labels := map[string]string{
		sandbox.LabelProject:  s.ID,
		sandbox.LabelKind:     kind,
		sandbox.LabelPhase:    strconv.Itoa(s.Phase),
		sandbox.LabelRole:     role,
		sandbox.LabelCall:     call,
		sandbox.LabelDeadline: strconv.FormatInt(deadline.Unix(), 10),
	}
	if s.State != "" {
		labels[sandbox.LabelState] = s.State
	}
	if s.Dir != "" {
		labels[sandbox.LabelDir] = s.Dir
	}
	return labels
}

// Tool describes a container for one of abl's own programs.
func (s *Containers) Tool(name string, labels map[string]string, argv ...string) sandbox.ContainerConfig {
	return sandbox.ContainerConfig{
		Name:   s.Name(name),
		Image:  s.Helper,
		User:   toolUser,
		Argv:   argv,
		Labels: labels,
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 1, Pids: 64, OpenFile: 1024},
	}
}

// Container returns the container with a configuration.
func (s *Containers) Container(container sandbox.ContainerConfig) sandbox.Container {
	return sandbox.Container{Engine: s.Engine, ContainerConfig: container}
}

// HolderEnded returns a sandbox.ErrKilled if err may be caused by the end of a place's holder.
func (s *Containers) HolderEnded(ctx context.Context, place string, err error) error {
	if place == "" {
		return err
	}
	return sandbox.HolderEnded(ctx, s.Engine, s.HolderName(place), err)
}

// Gone reports whether a container does not exist or does not run.
func (s *Containers) Gone(ctx context.Context, name string) bool {
	return sandbox.Gone(ctx, s.Engine, name)
}

// Worker describes a container for an agent, an app, tests or a build.
func (s *Containers) Worker(name, image, place string, labels map[string]string) sandbox.ContainerConfig {
	return sandbox.ContainerConfig{
		Name:   s.Name(name),
		Image:  image,
		User:   fmt.Sprintf("%d:%d", s.UID, s.GID),
		Labels: labels,
		Env: []string{
			"HOME=" + helper.Home, "USER=" + helper.User, "LOGNAME=" + helper.User, "LANG=C.UTF-8",
			"PYTHONDONTWRITEBYTECODE=1", // a repository may not ignore __pycache__
		},
		Reach:  s.JoinPlace(place),
		Limits: s.Limits,
		Shm:    s.Spaces.Shm,
	}
}

// Reach returns the networks of a place and its names there.
func (s *Containers) Reach(place string) sandbox.Reach {
	var reach sandbox.Reach
	on := func(network string, aliases ...string) {
		reach.Endpoints = append(reach.Endpoints, sandbox.Endpoint{Network: s.Network(network), Aliases: aliases})
	}
	service, isService := strings.CutPrefix(place, PlaceService)
	trial, isTrial := strings.CutPrefix(place, placeTrial)
	app := place == PlaceApp || strings.HasPrefix(place, PlaceApp+"-")
	switch {
	case place == PlaceBuilder && s.Trial && !s.Gated[place]:
		on("trial")
	case place == PlaceBuilder:
		on("builder")
		if s.Trial {
			on("trial")
		}
	case isTrial:
		on("trial", trial)
	case isService:
		on("app", service)
	case app && (s.Services || s.Port == 0):
		on("app", helper.AppAlias)
	case place == PlaceVerifier && s.Port == 0:
		on("app")
	}
	if place == PlaceVerifier && s.Gated[place] {
		on("verifier")
	}
	// the app is at 127.0.0.1 for the app and its tests
	if s.Port != 0 && !isService && !isTrial && place != PlaceBuilder {
		reach.Self = []string{helper.AppAlias}
	}
	return reach
}

// JoinPlace returns the reach of a container that joins the holder of a place, "" for no network.
func (s *Containers) JoinPlace(place string) sandbox.Reach {
	if place == "" {
		return sandbox.Reach{}
	}
	return Join(s.HolderName(place), s.Reach(place))
}

// Join returns the reach of a container that joins a holder with the given reach.
func Join(holder string, reach sandbox.Reach) sandbox.Reach {
	return sandbox.Reach{Join: holder, Through: append([]sandbox.Endpoint{}, reach.Endpoints...), Self: reach.Self}
}

// EgressEndpoint returns the gateways' endpoint on the egress network.
func (s *Containers) EgressEndpoint() sandbox.Endpoint {
	return sandbox.Endpoint{Network: cmp.Or(s.Egress, s.Network("egress")), Foreign: s.Egress != ""}
}

// EnsureEgress creates the egress network, unless the user configured one.
func (s *Containers) EnsureEgress(ctx context.Context) error {
	if s.Egress != "" {
		return nil
	}
	return s.Engine.EnsureNetwork(ctx, sandbox.Network{
		Name:   s.EgressEndpoint().Network,
		Egress: true,
		Pool:   s.Pool,
		Labels: s.Labels("network", "egress", "", s.PhaseEnd()),
	})
}

// PhaseEnd returns the deadline of containers, networks and volumes that live as long as the phase.
func (s *Containers) PhaseEnd() time.Time { return time.Now().Add(cmp.Or(s.Life, 24*time.Hour)) }

// HolderName returns the name of the holder of a place.
func (s *Containers) HolderName(place string) string { return s.Name("holder-" + place) }

// Holder starts the holder of a place unless it runs: it may have ended at its deadline or with
// the engine. It does nothing for the place "".
func (s *Containers) Holder(ctx context.Context, place string) error {
	if place == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, err := s.Engine.Status(ctx, s.HolderName(place)); err == nil && st.State == sandbox.Running {
		return nil
	} else if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.startHolder(ctx, place, s.PhaseEnd())
}

// startHolder starts a new holder of a place. The holder, and with it the network of the
// containers that joined it, ends at until.
func (s *Containers) startHolder(ctx context.Context, place string, until time.Time) error {
	reach := s.Reach(place)
	container := s.Tool("holder-"+place, s.Labels("holder", place, "", until))
	container.Seals, container.Reach = len(reach.Endpoints) > 0, reach
	var args []string
	if len(reach.Self) > 0 {
		container.Mounts = []sandbox.Mount{s.SocketVolume(place)}
		args = s.passArgs(place)
	}
	if container.Seals {
		args = append(args, "--seal", toolUser)
	}
	return s.StartNamespace(ctx, container, args...)
}

// SocketVolume returns the volume with the sockets that connect the holder of an app and the
// holders of its tests. The Verifier tests the app at PlaceApp.
func (s *Containers) SocketVolume(place string) sandbox.Mount {
	if place == PlaceVerifier {
		place = PlaceApp
	}
	return sandbox.Mount{What: sandbox.Sockets, Source: s.Name("sockets-" + place), Target: helper.Sockets}
}

// passArgs returns the holder's arguments that forward connections to the app and to its
// broker: from the sockets on the app's side, and to the sockets on the side of its tests.
func (s *Containers) passArgs(place string) []string {
	pairs := [][2]string{{LocalAddr(helper.BrokerPort), BrokerSocket}}
	if !s.IsProgram() {
		pairs = append(pairs, [2]string{LocalAddr(s.Port), AppSocket})
	}
	var args []string
	for _, p := range pairs {
		if place != PlaceVerifier {
			p[0], p[1] = p[1], p[0]
		}
		args = append(args, "--pass", p[0]+"="+p[1])
	}
	return args
}

// IsProgram reports whether the app is a program, which its broker runs and which does not listen.
func (s *Containers) IsProgram() bool { return s.Port == helper.BrokerPort }

// LocalAddr returns the address of a port of the container itself.
func LocalAddr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// The sockets in the socket volume.
const (
	AppSocket    = helper.Sockets + "/" + helper.AppSocket
	BrokerSocket = helper.Sockets + "/" + helper.BrokerSocket
)

// StartNamespace starts a container that holds a network namespace, and waits until it is ready.
// It ignores the end of ctx, so that the engine creates no container after the last sweep.
func (s *Containers) StartNamespace(ctx context.Context, container sandbox.ContainerConfig, args ...string) (err error) {
	ctx, reach := context.WithoutCancel(ctx), container.Reach
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot create the network of %s: %w", container.Name, err)
		}
	}()
	for _, ep := range reach.Endpoints {
		n := sandbox.Network{
			Name:   ep.Network,
			Pool:   s.Pool,
			Labels: s.Labels("network", container.Labels[sandbox.LabelRole], "", s.PhaseEnd()),
		}
		if err := s.Engine.EnsureNetwork(ctx, n); err != nil {
			return err
		}
	}
	for _, m := range container.Mounts {
		if m.What != sandbox.Sockets {
			continue
		}
		volume := sandbox.Volume{Name: m.Source, Labels: s.Labels("sockets", "", "", s.PhaseEnd())}
		if err := s.Engine.EnsureVolume(ctx, volume); err != nil {
			return err
		}
	}
	container.Argv = HolderArgv(container, args...)
	_, err = s.startTool(ctx, container)
	return err
}

// MaxStarts is the number of times that abl repeats a step whose container is ended from outside.
const MaxStarts = 3

// startTool starts a container of abl's own programs and returns its first line. It starts another one
// if something else ends it.
func (s *Containers) startTool(ctx context.Context, container sandbox.ContainerConfig) (line []byte, err error) {
	for range MaxStarts {
		if line, err = tryTool(ctx, s.Container(container)); err == nil {
			break
		}
		if st, serr := s.Engine.Status(ctx, container.Name); serr != nil || st.State != sandbox.Exited {
			break
		}
	}
	return line, err
}

// tryTool replaces a container of this name, starts the new one and waits until it is ready.
func tryTool(ctx context.Context, c sandbox.Container) ([]byte, error) {
	if err := c.Replace(ctx); err != nil {
		return nil, err
	}
	failpoint.Here("holder.created")
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	failpoint.Here("holder.started")
	// No program may run in a holder's namespace before the holder has closed its network.
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return c.FirstLine(ctx)
}

// HolderArgv returns the command line of a container that holds a network namespace.
func HolderArgv(container sandbox.ContainerConfig, args ...string) []string {
	return append([]string{helper.Bin + "/" + helper.HelperHolder, "--deadline", container.Labels[sandbox.LabelDeadline]},
		args...)
}

// HostAddrs returns the addresses of the engine's machine, without loopback addresses.
func (s *Containers) HostAddrs(ctx context.Context) (all []netip.Addr, err error) {
	b, err := s.hostServer(ctx)
	if err != nil {
		return nil, err
	}
	for _, host := range b.Hosts {
		at, err := netip.ParseAddr(host)
		if err != nil {
			return nil, fmt.Errorf("%w: the listener on the engine's machine reports %q", sandbox.ErrUnproven, host)
		}
		all = append(all, at.WithZone(""))
	}
	return all, nil
}

// hostServer returns the listener on the engine's machine, and starts it unless it runs.
func (s *Containers) hostServer(ctx context.Context) (*HostServer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil && !s.Gone(ctx, s.server.Name) {
		return s.server, nil
	}
	container := HostContainer(s.Tool("listener", s.Labels("listener", "", "", s.PhaseEnd())))
	line, err := s.startTool(context.WithoutCancel(ctx), container)
	if err == nil {
		s.server, err = ReadHostServer(s.Engine, container.Name, line)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on the engine's machine: %w", err)
	}
	return s.server, nil
}
