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
	patience = 10                    // the wait for silence, as a multiple of the slowest peer's time
	least    = 5 * time.Millisecond  // to read responses that have arrived
	again    = 20 * time.Millisecond // between dials of a peer
	longest  = 3 * time.Second       // for a peer or a resolver to respond
	talking  = 2 * time.Second       // for data on an accepted connection
	maxWord  = 200                   // bytes of a response to read
	quiet    = "silence"             // expected of the host
	unknown  = "no such name"        // expected of a resolver
	yes      = "answers"             // expected of a peer
)

// Network checks at the same time which addresses respond and which do not. An accepted connection
// without data does not count as a response, because some networks accept every connection. If spec
// is nil, Network returns nil.
func Network(ctx context.Context, spec *helper.ProbeNet) sandbox.Proof {
	if spec == nil {
		return nil
	}
	host := newSilence(spec)
	begun := time.Now() // all requests are sent
	named := make(chan sandbox.Proof, 1)
	go func() { named <- lookups(ctx, spec.Names) }()
	peers, slowest := askPeers(ctx, spec.Peers)
	sent := broadcasts(spec) // after the holder has responded: it sets the packet filter first
	host.listen(begun.Add(max(time.Duration(spec.WaitMS)*time.Millisecond, patience*slowest)))
	proof := append(peers, <-named...)
	if len(spec.Own) > 0 {
		proof = append(proof, sandbox.Same("addresses on other networks", "", foreignAddresses(spec.Own)))
	}
	far := sandbox.Proof{host.tcp.check("the host by tcp"), host.udp.check("the host by udp")}
	far = append(append(far, sent...),
		sandbox.Same("IPv6 addresses", "", ipv6Addresses()),
		sandbox.Same("next hops that answer", "", nextHops()))
	for i := range far {
		far[i].Weak = spec.Weak && !far[i].OK
	}
	return append(proof, far...)
}

// askPeers connects to every peer and returns the time of the slowest one.
func askPeers(ctx context.Context, peers []helper.ProbePeer) (sandbox.Proof, time.Duration) {
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

// ask connects to a peer. It returns the result and the response time, without the time until the
// peer was up.
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
		word, _ := io.ReadAll(io.LimitReader(conn, maxWord)) // data before an error counts
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

// foreignAddresses returns the container's addresses that are not in its own subnets, without
// loopback.
func foreignAddresses(own []string) string {
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

// Addresses returns the container's addresses with their networks, without loopback addresses.
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

// answering returns the gateways whose hardware address the kernel has learned. arp is the content
// of /proc/net/arp.
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

// lookups checks that the resolver is the holder's, and that it resolves no outside names. A
// missing response proves nothing: the query may have left the network.
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

// lookup returns the addresses of a name, unknown if there is no such name, or the error.
func lookup(ctx context.Context, name string) string {
	r := &net.Resolver{PreferGo: true}
	found, err := r.LookupNetIP(ctx, "ip4", name+".") // the dot prevents search domains
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

// neighbours returns the addresses that the host may have: all addresses of a small network, the
// first one of a large network, and the gateways of the routes.
func neighbours() []string {
	const small = 24 // bits
	routes, _ := os.ReadFile("/proc/net/route")
	all := gateways(string(routes))
	own, _ := Addresses() // without addresses there are no neighbours
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

// gateways returns the gateways in table, the content of /proc/net/route. Its addresses are
// hexadecimal little-endian words.
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
