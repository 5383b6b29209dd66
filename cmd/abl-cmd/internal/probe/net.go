//go:build linux

package probe

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

const (
	patience = 10 // silence lasts at least so many times what the slowest peer took
	again    = 20 * time.Millisecond
	longest  = 3 * time.Second // for a peer or a resolver to answer at all
	talking  = 2 * time.Second // for words on a connection that was accepted
	maxWord  = 200             // bytes of an answer that are looked at
	quiet    = "silence"       // what is to be heard of the host
	unknown  = "no such name"  // what a resolver is to say
	yes      = "answers"       // what a peer does
)

// Network tries what has to be out of reach and what has to be in it, all at
// once. What counts is what is heard and never that a connection was accepted:
// some networks accept every one. nil looks at nothing.
func Network(ctx context.Context, spec *helper.ProbeNet) sandbox.Proof {
	if spec == nil {
		return nil
	}
	ears := newEars(spec)
	begun := time.Now() // every try is on its way
	named := make(chan sandbox.Proof, 1)
	go func() { named <- lookups(ctx, spec.Names) }()
	peers, slowest := meet(ctx, spec.Peers)
	shouted := shouts(spec) // the peer that answered is the holder, which closes the network first
	ears.listen(begun.Add(max(time.Duration(spec.WaitMS)*time.Millisecond, patience*slowest)))
	proof := append(peers, <-named...)
	far := sandbox.Proof{ears.said("tcp"), ears.said("udp")}
	far = append(append(far, shouted...), around()...)
	if len(spec.Own) > 0 {
		proof = append(proof, addresses(spec.Own))
	}
	for i := range far {
		far[i].Weak = spec.Weak && !far[i].OK
	}
	return append(proof, far...)
}

// meet asks every peer and returns how long the slowest one took.
func meet(ctx context.Context, peers []helper.ProbePeer) (sandbox.Proof, time.Duration) {
	proof := make(sandbox.Proof, len(peers))
	took := make([]time.Duration, len(peers))
	var all sync.WaitGroup
	for i, peer := range peers {
		all.Go(func() {
			proof[i], took[i] = ask(ctx, peer)
		})
	}
	all.Wait()
	var slowest time.Duration
	for _, d := range took {
		slowest = max(slowest, d)
	}
	return proof, slowest
}

// ask says what came of one peer, and how long it took to answer once it was up.
func ask(ctx context.Context, peer helper.ProbePeer) (check sandbox.Check, took time.Duration) {
	check = sandbox.Check{Name: "peer " + peer.At, Want: yes}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	begun := time.Now()
	conn, err := dial(ctx, "tcp4", peer.At)
	for errors.Is(err, unix.ECONNREFUSED) && ctx.Err() == nil { // it is not up yet
		time.Sleep(again)
		begun = time.Now()
		conn, err = dial(ctx, "tcp4", peer.At)
	}
	if err != nil {
		check.Got = err.Error()
		return check, time.Since(begun)
	}
	defer conn.Close()
	check.Got, check.OK = yes, true
	if peer.Say != "" {
		if word := hear(conn, longest); word != peer.Say {
			check.Got, check.OK = fmt.Sprintf("says %q", word), false
		}
	}
	return check, time.Since(begun)
}

func dial(ctx context.Context, network, at string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, at)
}

// hear is what is said on a connection within a time, maxWord bytes at most.
func hear(conn net.Conn, within time.Duration) string {
	if conn.SetReadDeadline(time.Now().Add(within)) != nil {
		return ""
	}
	word, _ := io.ReadAll(io.LimitReader(conn, maxWord)) // what came before an error counts
	return string(word)
}

// around checks what the kernel knows of the network: no address of the kind
// that nobody filters, and no next hop that would carry anything further. It is
// asked after others tried to go through one.
func around() sandbox.Proof {
	six, err := os.ReadFile("/proc/net/if_inet6")
	if err != nil && !os.IsNotExist(err) {
		six = []byte(err.Error())
	}
	routes, rerr := os.ReadFile("/proc/net/route")
	arp, aerr := os.ReadFile("/proc/net/arp")
	hops := strings.Join(answering(gateways(string(routes)), string(arp)), " ")
	if err := errors.Join(rerr, aerr); err != nil {
		hops = err.Error()
	}
	return sandbox.Proof{
		sandbox.Same("IPv6 addresses", "", strings.TrimSpace(string(six))),
		sandbox.Same("next hops that answer", "", hops),
	}
}

// addresses checks that the box has none but loopback's and those in its own ranges.
func addresses(own []string) sandbox.Check {
	const name = "addresses on other networks"
	all, err := net.InterfaceAddrs()
	if err != nil {
		return sandbox.Same(name, "", err.Error())
	}
	var others []string
	for _, a := range all {
		at, err := netip.ParsePrefix(a.String())
		within := func(r string) bool {
			p, err := netip.ParsePrefix(r)
			return err == nil && p.Contains(at.Addr())
		}
		if err != nil || !at.Addr().IsLoopback() && !slices.ContainsFunc(own, within) {
			others = append(others, a.String())
		}
	}
	return sandbox.Same(name, "", strings.Join(others, " "))
}

// answering are the gateways whose hardware address the kernel has learned.
func answering(gateways []string, arp string) (all []string) {
	const complete = "0x2"
	for line := range strings.Lines(arp) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] == "00:00:00:00:00:00" || !strings.HasPrefix(f[2], "0x") || f[2] == "0x0" {
			continue
		}
		for _, g := range gateways {
			if g == f[0] && f[2] >= complete {
				all = append(all, g)
			}
		}
	}
	return all
}

// lookups checks that the resolver is the holder's, and that it knows no name of
// the outside. An answer that does not come proves nothing: the question may be
// on its way to anybody.
func lookups(ctx context.Context, names []string) sandbox.Proof {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	proof := make(sandbox.Proof, len(names)+1)
	var all sync.WaitGroup
	all.Go(func() { proof[0] = sandbox.Same("resolver inside", "127.0.0.1", lookup(ctx, helper.HolderName)) })
	for i, name := range names {
		all.Go(func() { proof[i+1] = sandbox.Same("name "+name, unknown, lookup(ctx, name)) })
	}
	all.Wait()
	return proof
}

func lookup(ctx context.Context, name string) string {
	r := &net.Resolver{PreferGo: true}
	found, err := r.LookupNetIP(ctx, "ip4", name+".") // the dot keeps it from being completed
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return unknown
	case err != nil:
		return err.Error()
	}
	var all []string
	for _, ip := range found {
		all = append(all, ip.Unmap().String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// neighbours are the addresses at which a host can be looked for from here: all
// of a small network, the first of a large one, and the gateways of the routes.
func neighbours() []string {
	const small = 24 // bits
	var all []string
	if text, err := os.ReadFile("/proc/net/route"); err == nil {
		all = gateways(string(text))
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return all
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().Is4() || p.Addr().IsLoopback() {
			continue
		}
		for at := p.Masked().Addr().Next(); p.Contains(at); at = at.Next() {
			if at != p.Addr() {
				all = append(all, at.String())
			}
			if p.Bits() < small {
				break
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// gateways are those of the kernel's table in the form of /proc/net/route, whose
// numbers are little-endian words in hexadecimal.
func gateways(table string) (all []string) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		raw, err := hex.DecodeString(f[2])
		if err != nil || len(raw) != 4 {
			continue // the heading
		}
		slices.Reverse(raw)
		if at, _ := netip.AddrFromSlice(raw); !at.IsUnspecified() {
			all = append(all, at.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
