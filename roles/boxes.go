package roles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
)

// Boxes makes the boxes of a project: it says whose they are, whom they run as, what
// bounds them, and which networks they are on. Each role, and the app, has a
// holder: a tiny box whose network namespace its calls join, with the reach of
// the role and no more. A kept namespace makes a call start in less than half
// the time of one with endpoints of its own (docs/architecture.md).
type Boxes struct {
	Engine   sandbox.Engine
	ID       string // the project's id, for names and labels
	State    string // LabelState of what is made, "" for none
	Dir      string // LabelDir of what is made, "" for none
	Phase    int
	UID, GID int            // whom a model's work runs as, never 0
	Root     bool           // abl is root: files for a box are made over to UID, and to the person afterwards
	Limits   sandbox.Limits // of a model's work
	Disk     DiskQuota      // of what is no workspace: the copies that apps, tests and builds run on
	Spaces   Spaces
	Output   int64             // bytes that tests or a build may print, 0 for any number
	Helper   string            // the image of abl's own programs
	Pool     string            // CIDR out of which networks are taken
	Egress   string            // an existing network to use as the gateways' way out, "" for one of abl's own
	Gated    map[string]bool   // roles whose calls have a gateway beside them
	Net      Net               // what is known of the engine's networks
	Life     time.Duration     // after which a holder that nobody took down ends itself, 0 is a day
	Safe     *redact.Sanitizer // keeps secrets out of what is kept of a box
	Port     int               // of the app, by which alone its tests reach it, a program's being its broker's; 0 without an app section: they share its network
	Services bool              // the app has some, and so a network
	Trial    bool              // the Builder's calls have the like beside them

	mu       sync.Mutex
	watching sync.Map // by the name of an app's box, the function that ends the watch over its disk
}

// The places, each with a reach of its own.
const (
	PlaceBuilder  = "builder"
	PlaceVerifier = "verifier"
	PlaceApp      = "app"

	placeService = "svc-"   // and its name: on the app's network
	placeTrial   = "trial-" // and its name: beside the Builder's calls
)

// toolUser differs from every role's, so that no role can signal its holder.
const toolUser = "10009:10009"

// BoxName is the engine-wide name of a call's box or of another box of the project.
func BoxName(id, key string) string { return sandbox.Name(id, key) }

func (s *Boxes) name(key string) string { return BoxName(s.ID, key) }

// Network is the name of one of the networks.
func (s *Boxes) Network(what string) string { return s.name("net-" + what) }

// Labels say of what is made what it is, whose, for which call, and until when.
func (s *Boxes) Labels(kind, role, call string, deadline time.Time) map[string]string {
	labels := map[string]string{
		sandbox.LabelProject: s.ID, sandbox.LabelKind: kind, sandbox.LabelPhase: strconv.Itoa(s.Phase), sandbox.LabelRole: role,
		sandbox.LabelCall: call, sandbox.LabelDeadline: strconv.FormatInt(deadline.Unix(), 10),
	}
	if s.State != "" {
		labels[sandbox.LabelState] = s.State
	}
	if s.Dir != "" {
		labels[sandbox.LabelDir] = s.Dir
	}
	return labels
}

// Tool is a box of abl's own programs, as intent.
func (s *Boxes) Tool(name string, labels map[string]string, argv ...string) sandbox.Box {
	return sandbox.Box{
		Name: s.name(name), Image: s.Helper, User: toolUser, Argv: argv, Labels: labels,
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 1, Pids: 64, OpenFile: 1024},
	}
}

// worker is a box in which a model's work runs, as intent.
func (s *Boxes) worker(name, image, place string, labels map[string]string) sandbox.Box {
	return sandbox.Box{
		Name: s.name(name), Image: image, User: fmt.Sprintf("%d:%d", s.UID, s.GID), Labels: labels,
		Env: []string{"HOME=" + helper.Home, "USER=" + helper.User, "LOGNAME=" + helper.User, "LANG=C.UTF-8"}, Reach: s.joined(place), Limits: s.Limits, Shm: s.Spaces.Shm,
	}
}

// Reach is the pure part: which networks a place is on, and under which names.
func (s *Boxes) Reach(place string) sandbox.Reach {
	var reach sandbox.Reach
	on := func(network string, aliases ...string) {
		reach.Endpoints = append(reach.Endpoints, sandbox.Endpoint{Network: s.Network(network), Aliases: aliases})
	}
	service, is := strings.CutPrefix(place, placeService)
	trial, tried := strings.CutPrefix(place, placeTrial)
	app := place == PlaceApp || strings.HasPrefix(place, PlaceApp+"-")
	switch {
	case place == PlaceBuilder && s.Trial && !s.Gated[place]:
		on("trial")
	case place == PlaceBuilder:
		on("builder")
		if s.Trial {
			on("trial")
		}
	case tried:
		on("trial", trial)
	case is:
		on("app", service)
	case app && (s.Services || s.Port == 0):
		on("app", helper.AppAlias)
	case place == PlaceVerifier && s.Port == 0:
		on("app")
	}
	if place == PlaceVerifier && s.Gated[place] {
		on("verifier")
	}
	if s.Port != 0 && !is && !tried && place != PlaceBuilder { // what tests the app, the app itself included, finds it at home
		reach.Self = []string{helper.AppAlias}
	}
	return reach
}

// joined is the reach of a box that joins the holder of a place, "" for none.
func (s *Boxes) joined(place string) sandbox.Reach {
	if place == "" {
		return sandbox.Reach{}
	}
	return joining(s.holder(place), s.Reach(place))
}

// joining is the reach of a box that joins a holder, given the holder's.
func joining(holder string, its sandbox.Reach) sandbox.Reach {
	return sandbox.Reach{Join: holder, Through: append([]sandbox.Endpoint{}, its.Endpoints...), Self: its.Self}
}

// Way is what only gateways are on: the way out.
func (s *Boxes) Way() sandbox.Endpoint {
	return sandbox.Endpoint{Network: cmp.Or(s.Egress, s.Network("egress")), Foreign: s.Egress != ""}
}

// OpenWay makes the network of the way out, unless it is the person's own.
func (s *Boxes) OpenWay(ctx context.Context) error {
	if s.Egress != "" {
		return nil
	}
	return s.Engine.EnsureNetwork(ctx, sandbox.Network{Name: s.Way().Network, Egress: true, Pool: s.Pool, Labels: s.Labels("network", "egress", "", s.end())})
}

// end is when what nobody took down ends by itself.
func (s *Boxes) end() time.Time { return time.Now().Add(cmp.Or(s.Life, 24*time.Hour)) }

// holder is the name of the holder of a place.
func (s *Boxes) holder(place string) string { return s.name("holder-" + place) }

// Holder makes sure that the holder of a place runs: one ends at its deadline, and
// with an engine that is stopped. Where there is no place there is none.
func (s *Boxes) Holder(ctx context.Context, place string) error {
	if place == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, err := s.Engine.Status(ctx, s.holder(place)); err == nil && st.State == sandbox.Running {
		return nil
	} else if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.hold(ctx, place, s.end())
}

// hold makes the holder of a place anew, with an end of its own: what runs under it
// ends then, too. It sees it through, lest the engine makes a box that no sweep has seen.
func (s *Boxes) hold(ctx context.Context, place string, until time.Time) (err error) {
	reach := s.Reach(place)
	box := s.Tool("holder-"+place, s.Labels("holder", place, "", until))
	box.Seals, box.Reach = len(reach.Endpoints) > 0, reach
	var args []string
	if len(reach.Self) > 0 {
		box.Mounts = []sandbox.Mount{s.door(place)}
		args = s.doors(place)
	}
	if box.Seals {
		args = append(args, "--seal", toolUser)
	}
	return s.holds(ctx, box, args...)
}

// door is the volume in which the holder of an app and those of its tests meet. The
// Verifier itself tests the one at PlaceApp.
func (s *Boxes) door(place string) sandbox.Mount {
	if place == PlaceVerifier {
		place = PlaceApp
	}
	return sandbox.Mount{What: sandbox.Door, Source: s.name("door-" + place), Target: helper.Door}
}

// doors are the holder's words for what goes to the app, and to its broker: from the
// door on the app's side, and to the door on its tests'.
func (s *Boxes) doors(place string) []string {
	pairs := [][2]string{{here(helper.BrokerPort), brokerSocket}}
	if !s.program() {
		pairs = append(pairs, [2]string{here(s.Port), appSocket})
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

// program says that the app is one that its broker runs, and listens nowhere.
func (s *Boxes) program() bool { return s.Port == helper.BrokerPort }

// here is a port of a box's own.
func here(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// The sockets in the door.
const (
	appSocket    = helper.Door + "/" + helper.AppSocket
	brokerSocket = helper.Door + "/" + helper.BrokerSocket
)

// holds makes a box that holds a network namespace, and waits until it is ready.
func (s *Boxes) holds(ctx context.Context, box sandbox.Box, args ...string) (err error) {
	ctx, reach := context.WithoutCancel(ctx), box.Reach
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot make the network of %s: %w", box.Name, err)
		}
	}()
	for _, ep := range reach.Endpoints {
		n := sandbox.Network{Name: ep.Network, Pool: s.Pool, Apart: s.Net.Apart, Labels: s.Labels("network", box.Labels[sandbox.LabelRole], "", s.end())}
		if err := s.Engine.EnsureNetwork(ctx, n); err != nil {
			return err
		}
	}
	for _, m := range box.Mounts {
		if m.What != sandbox.Door {
			continue
		}
		if err := s.Engine.EnsureVolume(ctx, sandbox.Volume{Name: m.Source, Labels: s.Labels("door", "", "", s.end())}); err != nil {
			return err
		}
	}
	box.Argv = holding(box, args...)
	for range mostMade {
		if err = s.holdOnce(ctx, box); err == nil {
			return nil
		}
		if st, serr := s.Engine.Status(ctx, box.Name); serr != nil || st.State != sandbox.Exited {
			return err
		}
	}
	return err
}

// holdOnce makes the box; one that is there is removed.
func (s *Boxes) holdOnce(ctx context.Context, box sandbox.Box) error {
	if err := s.Engine.Remove(ctx, box.Name); err != nil {
		return err
	}
	if err := Make(ctx, s.Engine, box); err != nil {
		return err
	}
	failpoint.Here("holder.created")
	if err := s.Engine.Start(ctx, box.Name); err != nil {
		return err
	}
	failpoint.Here("holder.started")
	// Before it has closed its network nothing may run in it.
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return s.firstLine(ctx, box.Name)
}

// holding is how a box holds a network namespace.
func holding(box sandbox.Box, args ...string) []string {
	return append([]string{helper.Bin + "/" + helper.HelperHolder, "--deadline", box.Labels[sandbox.LabelDeadline]}, args...)
}

// firstLine waits for the first line of one of abl's own programs, which it prints when it
// is ready.
func (s *Boxes) firstLine(ctx context.Context, name string) error {
	line, err := s.Engine.Head(ctx, name, maxProof)
	if err == nil && !bytes.HasSuffix(line, []byte("\n")) {
		err = fmt.Errorf("%s ended before it was ready: %q", name, line)
	}
	return err
}

// Make makes a box that has nobody inside to look around, and compares it with
// its intent.
func Make(ctx context.Context, engine sandbox.Engine, box sandbox.Box) error {
	if _, err := engine.Create(ctx, box); err != nil {
		return held(ctx, engine, box.Reach.Join, err)
	}
	proof, err := engine.Prove(ctx, box)
	if err == nil {
		err = proof.Err()
	}
	if err = held(ctx, engine, box.Reach.Join, err); err != nil {
		return errors.Join(fmt.Errorf("box %q: %w", box.Name, err), engine.Remove(ctx, box.Name))
	}
	return nil
}

// ErrKilled means that somebody else, or the engine's own end, ended a container: what ran in
// it, or was to join its network, proves nothing and can be made again.
var ErrKilled = errors.New("a container was ended from outside")

// mostMade is how often in a row abl makes something whose container is ended from outside.
const mostMade = 3

// held puts ErrKilled in the place of an err whose cause is the end of a network's holder.
// What stood in that network is not where it was meant to be, so the text of err is kept,
// and its kind is not.
func held(ctx context.Context, engine sandbox.Engine, holder string, err error) error {
	if err == nil || holder == "" || errors.Is(err, ErrKilled) || errors.Is(err, context.Canceled) || !gone(context.WithoutCancel(ctx), engine, holder) {
		return err
	}
	return fmt.Errorf("%w: %s (%v)", ErrKilled, holder, err) //nolint:errorlint // its kind would be taken for the fault
}

// gone says that a box does not run any more.
func gone(ctx context.Context, engine sandbox.Engine, name string) bool {
	st, err := engine.Status(ctx, name)
	return errors.Is(err, sandbox.ErrNotFound) || err == nil && st.State != sandbox.Running
}
