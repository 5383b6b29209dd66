package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"abl/internal/sandbox"
)

// hostService responds to every connection on all addresses of the host.
func (l *lab) hostService() (port, word string) {
	l.Helper()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	l.must(err)
	word = rand.Text()
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(word)) //nolint:errcheck // the caller looks at what arrived
			c.Close()             //nolint:errcheck // likewise
		}
	})
	l.Cleanup(func() { listener.Close(); served.Wait() }) //nolint:errcheck // it only ends the loop
	_, port, err = net.SplitHostPort(listener.Addr().String())
	l.must(err)
	return port, word
}

// hostAddresses returns the addresses at which a container might reach the host: that of the bridge
// and all of the host.
func (l *lab) hostAddresses(name, port string) (out []string) {
	l.Helper()
	n, err := l.api.NetworkInspect(l.Context(), name, network.InspectOptions{})
	l.must(err)
	subnet, err := netip.ParsePrefix(n.IPAM.Config[0].Subnet)
	l.must(err)
	out = append(out, net.JoinHostPort(subnet.Addr().Next().String(), port))
	all, err := net.InterfaceAddrs()
	l.must(err)
	for _, a := range all {
		if ip := a.(*net.IPNet).IP.To4(); ip != nil && !ip.IsLoopback() {
			out = append(out, net.JoinHostPort(ip.String(), port))
		}
	}
	return out
}

func TestIsolatedNetworkReachesAPeerAndNotTheHost(t *testing.T) {
	l := newLab(t)
	port, word := l.hostService()
	inner, outer := l.network("inner", false), l.network("outer", true)

	peer := l.container("peer", "serve", "9000", "peer's word")
	peer.Reach.Endpoints = []sandbox.Endpoint{{Network: inner, Aliases: []string{"app"}}}
	l.awaitLog(l.start(peer), "listening")

	asks := append([]string{"dial", "app:9000"}, l.hostAddresses(inner, port)...)
	desired := l.container("a", asks...)
	desired.Reach.Endpoints = []sandbox.Endpoint{{Network: inner}}
	log := l.good(desired)
	if !strings.Contains(log, `app:9000 said "peer's word"`) {
		t.Errorf("dial to the peer: got\n%s\nwant %q in it", log, `app:9000 said "peer's word"`)
	}
	if strings.Contains(log, word) {
		t.Errorf("dial to the host: got\n%s\nwant it without %q", log, word)
	}

	// The same question from an ordinary bridge, so that silence above means isolation.
	control := l.container("control", append([]string{"dial"}, l.hostAddresses(outer, port)...)...)
	control.Reach.Endpoints = []sandbox.Endpoint{{Network: outer}}
	if log := l.good(control); !strings.Contains(log, word) {
		t.Errorf("dial to the host from an ordinary bridge: got\n%s\nwant %q, else the test proves nothing", log, word)
	}
}

func TestJoinedContainerHasTheHoldersReach(t *testing.T) {
	l := newLab(t)
	inner := l.network("inner", false)
	holder := l.container("holder", "serve", "9000", "holder's word")
	holder.Reach.Endpoints = []sandbox.Endpoint{{Network: inner, Aliases: []string{"app"}}}
	l.awaitLog(l.start(holder), "listening")
	joined := l.container("a", "dial", "127.0.0.1:9000", "app:9000", "--", "cat", "/proc/sys/net/ipv6/conf/all/disable_ipv6", "--", "cat", "/proc/sys/net/ipv4/ip_forward")
	joined.Reach.Join = holder.Name
	want := "127.0.0.1:9000 said \"holder's word\"\napp:9000 said \"holder's word\"\n1\n0\n"
	if log := l.good(joined); log != want {
		t.Errorf("joined container: got\n%s\nwant\n%s", log, want)
	}
}

func TestNoNetworkAtAll(t *testing.T) {
	l := newLab(t)
	if log := l.good(l.container("a", "cat", "/proc/net/dev")); strings.Contains(log, "eth") {
		t.Errorf("network devices: got\n%s\nwant it without %q", log, "eth")
	}
}

// A container on two networks reaches the outside through the egress network and has aliases on
// both.
func TestTwoEndpoints(t *testing.T) {
	l := newLab(t)
	inner, outer := l.network("a-inner", false), l.network("z-outer", true)
	gateway := l.container("gateway", "cat", "/proc/net/route", "--", "serve", "9000", "gateway's word")
	gateway.Reach = sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: inner, Aliases: []string{"llm"}}, {Network: outer}}, Resolve: true}
	l.awaitLog(l.start(gateway), "listening")
	desired := l.container("a", "dial", "llm:9000")
	desired.Reach.Endpoints = []sandbox.Endpoint{{Network: inner}}
	if log := l.good(desired); log != "llm:9000 said \"gateway's word\"\n" {
		t.Errorf("dial to the gateway: got %q, want %q", log, "llm:9000 said \"gateway's word\"\n")
	}
	log, err := l.Logs(t.Context(), gateway.Name, 1<<12)
	l.must(err)
	n, err := l.api.NetworkInspect(t.Context(), outer, network.InspectOptions{})
	l.must(err)
	way := netip.MustParsePrefix(n.IPAM.Config[0].Subnet).Addr().Next().As4()
	if want := fmt.Sprintf("00000000\t%02X%02X%02X%02X", way[3], way[2], way[1], way[0]); !strings.Contains(string(log), want) {
		t.Errorf("routes of the gateway: got\n%s\nwant the outer network's %q in it", log, want)
	}
}

func TestOutsideNamesNeedEgress(t *testing.T) {
	l := newLab(t)
	desired := l.container("a", "exit", "0")
	desired.Reach = sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: l.network("n", false)}}, Resolve: true}
	if _, err := l.Create(t.Context(), desired); err == nil || !strings.Contains(err.Error(), "without an egress") {
		t.Errorf("names without egress: got error %v, want one with %q", err, "without an egress")
	}
}

func TestForeignNetworkAndVolumeAreRefused(t *testing.T) {
	l := newLab(t)
	other := newLab(t)
	vol := sandbox.Volume{Name: sandbox.Name(other.project, "v"), Labels: other.labels("volume")}
	other.must(other.EnsureVolume(t.Context(), vol))
	net := l.container("a", "exit", "0")
	net.Reach.Endpoints = []sandbox.Endpoint{{Network: other.network("n", false)}}
	mount := l.container("b", "exit", "0")
	mount.Mounts = []sandbox.Mount{{What: sandbox.Scratch, Source: vol.Name, Target: "/v"}}
	for _, desired := range []sandbox.ContainerConfig{net, mount} {
		if _, err := l.Create(t.Context(), desired); err == nil || !strings.Contains(err.Error(), "does not belong to this project") {
			t.Errorf("container %q: got error %v, want one with %q", desired.Name, err, "does not belong to this project")
		}
	}
}

// A network that the user named may belong to another project, but cannot be the host's.
func TestForeignNetwork(t *testing.T) {
	l, other := newLab(t), newLab(t)
	for name, ok := range map[string]bool{other.network("n", true): true, "host": false, "none": false} {
		desired := l.container("on-"+name, "exit", "0")
		desired.Reach.Endpoints = []sandbox.Endpoint{{Network: name, Foreign: true}}
		if _, err := l.Create(t.Context(), desired); (err == nil) != ok {
			t.Errorf("container on network %q: got error %v, want it created: %v", name, err, ok)
		}
	}
	// The container is removed before its network.
	if _, err := l.Sweep(t.Context(), l.ours(), nil); err != nil {
		t.Error(err)
	}
}

// Parallel creations, with the same and with different names, create each network once and without
// overlaps.
func TestNetworksSideBySide(t *testing.T) {
	l := newLab(t)
	var all sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		all.Go(func() {
			errs[i] = l.EnsureNetwork(t.Context(), sandbox.Network{
				Name: sandbox.Name(l.project, fmt.Sprint(i%4)), Labels: l.labels("network"), Pool: "10.214.0.0/25",
			})
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("network %d: got error %v, want none", i%4, err)
		}
	}
	list, err := l.api.NetworkList(t.Context(), network.ListOptions{Filters: withLabels(l.ours())})
	l.must(err)
	ranges := map[string]bool{}
	for _, n := range list {
		ranges[n.IPAM.Config[0].Subnet] = true
	}
	if len(list) != 4 || len(ranges) != 4 {
		t.Errorf("networks: got %d with ranges %v, want 4 with 4 ranges", len(list), ranges)
	}
}

// twin creates a second network with the same name. On an engine before 25 a killed abl and the
// next one can do that.
func (l *lab) twin(n sandbox.Network, subnet string) (id string) {
	l.Helper()
	asked, err := json.Marshal(network.CreateRequest{Name: n.Name, CreateOptions: networkOptions(n, sandbox.NoAddress, netip.MustParsePrefix(subnet))})
	l.must(err)
	api := l.api.(*client.Client)
	answer, err := api.HTTPClient().Post("http://engine/v"+api.ClientVersion()+"/networks/create", "application/json", bytes.NewReader(asked))
	l.must(err)
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusConflict {
		l.Skip("this engine lets no two networks have one name")
	}
	var made network.CreateResponse
	l.must(json.NewDecoder(answer.Body).Decode(&made))
	return made.ID
}

// Of two networks with the same name the used one stays, regardless of their order. A network of
// another project is never removed.
func TestTwinNetworks(t *testing.T) {
	for _, c := range []struct {
		name    string
		used    int // which of the two has a container on it, 0 for neither
		foreign bool
	}{{"none is used", 0, false}, {"the first is used", 1, false}, {"the second is used", 2, false}, {"they are another's", 0, true}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			n := sandbox.Network{Name: sandbox.Name(l.project, "inner"), Labels: l.labels("network"), Pool: "10.214.2.0/24"}
			made := n
			if c.foreign {
				made.Labels = map[string]string{"whose": l.project}
			}
			ids := []string{"", l.twin(made, "10.214.2.0/28"), l.twin(made, "10.214.2.16/28")}
			t.Cleanup(func() {
				for _, id := range ids[1:] {
					l.api.NetworkRemove(context.WithoutCancel(t.Context()), id) //nolint:errcheck // the sweep takes what is ours
				}
			})
			if c.used > 0 {
				desired := l.container("on-it", "block")
				desired.Reach.Endpoints = []sandbox.Endpoint{{Network: l.network("other", false)}}
				l.must(l.api.NetworkConnect(t.Context(), ids[c.used], l.start(desired), nil))
			}
			err := l.EnsureNetwork(t.Context(), n)
			if c.foreign == (err == nil) {
				t.Errorf("creation of the network: got error %v, want an error: %v", err, c.foreign)
			}
			var left []string
			list, err := l.api.NetworkList(t.Context(), network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", n.Name))})
			l.must(err)
			for _, n := range list {
				left = append(left, n.ID)
			}
			want := 1
			if c.foreign {
				want = 2
			}
			if len(left) != want || c.used > 0 && left[0] != ids[c.used] {
				t.Errorf("networks left of %q: got %q, want %d, with the used one", ids[1:], left, want)
			}
		})
	}
}

// The error for an exhausted pool has a hint.
func TestPoolUsedUp(t *testing.T) {
	l := newLab(t)
	for i, want := range []string{"", "no free /28 left: remove old networks"} {
		n := sandbox.Network{Name: sandbox.Name(l.project, fmt.Sprint(i)), Labels: l.labels("network"), Pool: "10.214.1.16/28"}
		if err := l.EnsureNetwork(t.Context(), n); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("network %d: got error %v, want %q", i, err, want)
		}
	}
}
