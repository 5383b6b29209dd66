package hostile

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/testing/lab"
)

// host is the set of servers on this machine: one on every address that responds with a word, one
// with the same response behind a published port of another container, and one that receives
// datagrams.
type host struct {
	word             string
	port, udp        int
	dial             string // every address of the servers, for the attacker
	shout            string // the same for datagrams
	everybody        string // broadcast and multicast addresses
	datagrams        atomic.Int64
	lastGram         atomic.Value
	foreignContainer string
}

// listen starts the servers.
func listen(t *testing.T, image string) *host {
	t.Helper()
	lab.Local(t) // it listens on this machine
	h := &host{word: "word-of-the-host-" + strings.ToLower(newCanaries().Host)}
	l, err := net.Listen("tcp", ":0") // IPv4 and IPv6
	if err != nil {
		t.Fatal(err)
	}
	h.port = l.Addr().(*net.TCPAddr).Port
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, h.word)
	})}
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
	packets, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	h.udp = packets.LocalAddr().(*net.UDPAddr).Port
	go func() {
		for buf := make([]byte, 512); ; {
			n, from, err := packets.ReadFrom(buf)
			if err != nil {
				return
			}
			h.datagrams.Add(1)
			h.lastGram.Store(fmt.Sprintf("%q from %v", buf[:n], from))
		}
	}()
	published := h.container(t, image)
	for _, at := range addresses(t) {
		h.dial += fmt.Sprintf("%s %s ", net.JoinHostPort(at, fmt.Sprint(h.port)), net.JoinHostPort(at, published))
		h.shout += net.JoinHostPort(at, fmt.Sprint(h.udp)) + " "
	}
	for _, all := range []string{"255.255.255.255", "224.0.0.1", "224.0.0.251", "239.255.255.250"} {
		h.everybody += net.JoinHostPort(all, fmt.Sprint(h.udp)) + " "
	}
	h.dial += h.foreignContainer + ":3000 "
	return h
}

// container starts a container like another project's: on the engine's default network, with a
// published port.
func (h *host) container(t *testing.T, image string) (port string) {
	t.Helper()
	id := docker(t, "run", "-d", "--label", "abl.project=test-hostile", "-p", "3000", image,
		"node", "-e", "require('http').createServer((q, r) => r.end('"+h.word+"')).listen(3000)")
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", id).Run() })
	h.foreignContainer = docker(t, "inspect", "--format", "{{.NetworkSettings.IPAddress}}", id)
	_, port, err := net.SplitHostPort(strings.Fields(docker(t, "port", id, "3000"))[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 200 { // until it listens
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			if resp, err := http.Get("http://127.0.0.1:" + port); err == nil {
				resp.Body.Close()
				return port
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the other container at port %s: got no response, want one", port)
	return ""
}

// addresses returns all addresses of this machine, and the usual names and addresses of a host or
// a cloud's metadata service.
func addresses(t *testing.T) []string {
	t.Helper()
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"host.docker.internal", "gateway.docker.internal", "172.17.0.1", "fe80::1%eth0"}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() {
			at := n.IP.String()
			if n.IP.IsLinkLocalUnicast() && n.IP.To4() == nil {
				at += "%eth0"
			}
			all = append(all, at)
		}
	}
	return all
}

// networkAttacks are attacks on what a container must not reach. Only a response counts, because
// some networks accept every connection.
func networkAttacks(h *host) []attack {
	return []attack{
		{
			id:     "E01",
			by:     "both",
			aside:  true,
			what:   "servers of the host at the addresses of the container's own networks",
			script: fmt.Sprintf(`$A neighbours %d 2375 2376 22 53 111 631`, h.port),
		},
		{
			id:     "E02",
			by:     "both",
			aside:  true,
			what:   "servers of the host at each of its own addresses",
			script: "$A dials " + h.dial,
		},
		{
			id:     "E11",
			by:     "both",
			aside:  true,
			what:   "another project's container, and its published port",
			script: fmt.Sprintf("$A dials %s:3000; $A dials %s", h.foreignContainer, h.dial),
		},
		{id: "E03", by: "both", aside: true, what: "IPv6"},
		{
			id:    "E04",
			by:    "both",
			aside: true,
			what:  "a cloud's metadata service",
			script: "$A dials 169.254.169.254:80 169.254.170.2:80 100.100.100.200:80 168.63.129.16:80 " +
				"metadata.google.internal:80 metadata:80",
		},
		{id: "E04-out", by: "both", aside: true, what: "the internet, by address and by name"},
		{id: "E05", by: "both", aside: true, what: "data in DNS queries"},
		{id: "E05-udp", by: "both", aside: true, what: "datagrams to the host", script: "$A shouts " + h.shout + h.everybody},
		{
			id:     "E08",
			by:     "both",
			aside:  true,
			what:   "the networks of other roles and projects",
			script: "$A strangers 3000 7070 8080 9100",
		},
		{id: "E09", by: "both", aside: true, what: "listening on every port"},
	}
}

func TestNetworksHold(t *testing.T) {
	s := newScene(t, usual+nodeApp)
	// With a provider, each role has a network with a gateway.
	s.Write(".abl/config.yaml", strings.Replace(s.Read(".abl/config.yaml"), "}}\n", ", provider: gemini}}\n", 1))
	h := listen(t, s.toolsImage())
	controlOfNetworks(t, s, h)
	s.playAttacks(t, append(networkAttacks(h), attack{
		id:    "E08-ports",
		by:    "verifier",
		aside: true,
		what:  "every port but the app's, its broker's and the resolver's",
	}))
	if !s.Exists(".abl/logs/calls/p1-build-1.1/gateway.jsonl") {
		t.Error("log of the Builder's gateway: got no file, want one")
	}
	if n := h.datagrams.Load(); n != 0 {
		t.Errorf("E05-udp: datagrams to the host: got %d, want 0; the last is %v", n, h.lastGram.Load())
	}
}

// Group E: the app cannot reach other hosts.
func TestAppsNetworkHolds(t *testing.T) {
	s := newScene(t, usual)
	h, image := listen(t, s.toolsImage()), s.service(t)
	s.Write(".abl/config.yaml", settings+usual+`
app:
  command: sh attack.sh
  port: 3000
  ready: {path: /, timeout: 90s}
  services: {db: {image: "`+image+`", env: {SHOUT: "`+strings.TrimSpace(h.everybody)+`"}, ready: {port: 4000}}}
`)
	id := docker(t, "run", "-d", "--label", "abl.project=test-hostile", "-e", "SHOUT="+h.everybody, image)
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", id).Run() })
	for range 600 {
		if h.datagrams.Load() > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	docker(t, "rm", "-f", id) // it sends to several addresses, and none of its datagrams may arrive later
	if h.datagrams.Swap(0) == 0 {
		t.Error("datagrams of the service's image in a plain container: got 0, want 1 or more")
	}
	attacks := networkAttacks(h)
	s.script(builds(write("attack.sh", inOneScript(t, attacks))), verifies())
	s.play(0)
	log := s.Read(".abl/logs/calls/p1-verify-1.1/app/app.log")
	for _, a := range attacks {
		t.Run("E10-"+a.id, func(t *testing.T) { checkHeld(t, a, "app", log) })
	}
	t.Run("E10-service", func(t *testing.T) {
		if s.Read(".abl/logs/calls/p1-verify-1.1/app/app.log") == "" {
			t.Error("log of the app, whose database sends datagrams first: got no output, want some")
		}
	})
	if n := h.datagrams.Load(); n != 0 {
		t.Errorf("datagrams to the host: got %d, want 0; the last is %v", n, h.lastGram.Load())
	}
}

// controlOfNetworks checks that the same attacks work from a plain container, and from a network
// that is only called internal.
func controlOfNetworks(t *testing.T, s *scene, h *host) {
	t.Helper()
	name := fmt.Sprintf("abl-test-hostile-%d", os.Getpid())
	docker(t, "network", "create", "--internal", "--label", "abl.project=test-hostile", name)
	t.Cleanup(func() { _ = exec.Command("docker", "network", "rm", name).Run() })
	kinds := map[string][]string{"a usual container": nil, "an internal network": {"--network", name}}
	var asked sync.WaitGroup
	for kind, args := range kinds {
		asked.Go(func() {
			out, err := runWeak(s, args, fmt.Sprintf("./attacker dials %s & ./attacker neighbours %d & wait", h.dial, h.port))
			most := 2 // newer engines separate an internal network from all host addresses except one
			if args != nil {
				most = 1
			}
			if err != nil || strings.Count(out, h.word) < most {
				t.Errorf("attack from %s without a defence: got error %v, want %d responses or more: %s",
					kind, err, most, out)
			}
		})
	}
	asked.Wait()
	for kind, args := range kinds {
		for what, at := range map[string]string{"one": h.shout, "everybody": h.everybody} {
			h.datagrams.Store(0)
			s.runWeakly(t, args, "./attacker shouts "+at)
			if h.datagrams.Load() == 0 {
				t.Errorf("datagrams to %s from %s: got 0, want 1 or more", what, kind)
			}
		}
	}
	h.datagrams.Store(0)
}

// runWeakly runs a command in a container with the attacker and only the engine's default defences.
func (s *scene) runWeakly(t *testing.T, options []string, script string) string {
	t.Helper()
	out, err := runWeak(s, options, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func runWeak(s *scene, options []string, script string) (string, error) {
	var errs bytes.Buffer
	args := append([]string{
		"run", "--rm", "--label", "abl.project=test-hostile", "-v", s.Dir + "/src:/work", "-w",
		"/work",
	}, options...)
	cmd := exec.Command("docker", append(args, s.toolsImage(), "sh", "-c", script)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), err
}
