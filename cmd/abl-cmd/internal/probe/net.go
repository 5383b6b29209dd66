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
	patience = 10                   // silence lasts at least so many times what the slowest peer took
	least    = 5 * time.Millisecond // for reading what has come
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
	if len(spec.Own) > 0 {
		proof = append(proof, sandbox.Same("addresses on other networks", "", others(spec.Own)))
	}
	far := sandbox.Proof{ears.tcp.check("the host by tcp"), ears.udp.check("the host by udp")}
	far = append(append(far, shouted...),
		sandbox.Same("IPv6 addresses", "", ipv6Addresses()),
		sandbox.Same("next hops that answer", "", nextHops()))
	for i := range far {
		far[i].Weak = spec.Weak && !far[i].OK
	}
	return append(proof, far...)
}

// meet asks every peer and returns how long the slowest one took.
func meet(ctx context.Context, peers []helper.ProbePeer) (sandbox.Proof, time.Duration) {
	proof := make(sandbox.Proof, len(peers))
	took := make([]time.Duration, len(peers)+1)
	var all sync.WaitGroup
	for i, peer := range peers {
		all.Go(func() {
			var said string
			said, took[i] = ask(ctx, peer)
			proof[i] = sandbox.Same("peer "+peer.At, yes, said)
		})
	}
	all.Wait()
	return proof, slices.Max(took)
}

// ask says what came of one peer, and how long it took to answer once it was up.
func ask(ctx context.Context, peer helper.ProbePeer) (said string, took time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var begun time.Time
	var conn net.Conn
	var err error
	for {
		begun = time.Now()
		conn, err = new(net.Dialer).DialContext(ctx, "tcp4", peer.At)
		if !errors.Is(err, unix.ECONNREFUSED) || ctx.Err() != nil {
			break
		}
		time.Sleep(again) // it is not up yet
	}
	if err != nil {
		return err.Error(), time.Since(begun)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if peer.Say != "" {
		word, _ := io.ReadAll(io.LimitReader(conn, maxWord)) // what came before an error counts
		if string(word) != peer.Say {
			return fmt.Sprintf("says %q", word), time.Since(begun)
		}
	}
	return yes, time.Since(begun)
}

// ipv6Addresses returns the IPv6 addresses, which no rule filters.
func ipv6Addresses() string {
	found, err := os.ReadFile("/proc/net/if_inet6")
	if err != nil && !os.IsNotExist(err) {
		return err.Error()
	}
	return strings.TrimSpace(string(found))
}

// nextHops returns the gateways that answer. It runs after probes tried to send through one.
func nextHops() string {
	routes, err := os.ReadFile("/proc/net/route")
	arp, aerr := os.ReadFile("/proc/net/arp")
	if err := errors.Join(err, aerr); err != nil {
		return err.Error()
	}
	return answering(gateways(string(routes)), string(arp))
}

// others are the addresses of the box beyond loopback's and those in its own ranges.
func others(own []string) string {
	all, err := Addresses()
	if err != nil {
		return err.Error()
	}
	within := func(at netip.Prefix) bool {
		return slices.ContainsFunc(own, func(r string) bool {
			p, err := netip.ParsePrefix(r)
			return err == nil && p.Contains(at.Addr())
		})
	}
	return strings.Trim(fmt.Sprint(slices.DeleteFunc(all, within)), "[]")
}

// Addresses are those of the box but loopback's, with their networks.
func Addresses() (all []netip.Prefix, err error) {
	found, err := net.InterfaceAddrs()
	for _, a := range found {
		at, bad := netip.ParsePrefix(a.String())
		err = errors.Join(err, bad)
		if !at.Addr().IsLoopback() {
			all = append(all, at)
		}
	}
	return all, err
}

// answering are the gateways whose hardware address the kernel has learned, by its table
// in the form of /proc/net/arp.
func answering(gateways []string, arp string) string {
	const complete = "0x2"
	var all []string
	for line := range strings.Lines(arp) {
		f := strings.Fields(line)
		if len(f) >= 4 && f[3] != "00:00:00:00:00:00" && f[2] >= complete && slices.Contains(gateways, f[0]) {
			all = append(all, f[0])
		}
	}
	return strings.Join(all, " ")
}

// lookups checks that the resolver is the holder's, and that it resolves no outside names. A missing answer
// proves nothing: the query may have left the network.
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
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isDNS && dns.IsNotFound:
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
	routes, _ := os.ReadFile("/proc/net/route")
	all := gateways(string(routes))
	own, _ := Addresses() // who has none has no neighbours
	for _, p := range own {
		for at := p.Masked().Addr().Next(); p.Addr().Is4() && p.Contains(at); at = at.Next() {
			if at != p.Addr() {
				all = append(all, at.String())
			}
			if p.Bits() < small {
				break
			}
		}
	}
	return all
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
	return all
}
