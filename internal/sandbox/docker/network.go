package docker

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"

	"abl/internal/sandbox"
)

const (
	bridge       = "bridge"
	gatewayMode  = "com.docker.network.bridge.gateway_mode_ipv4" // since API 1.48; older engines accept and ignore it
	inhibitIPv4  = "com.docker.network.bridge.inhibit_ipv4"
	gatewayModes = "1.48"
)

// EnsureNetwork makes a network unless it is there. One of the same name that
// is another project's, or not as isolated as asked, is refused.
func (e *stores) EnsureNetwork(ctx context.Context, n sandbox.Network) (err error) {
	defer func() { err = about(err, "cannot make network %q", n.Name) }()
	e.making.Lock()
	defer e.making.Unlock()
	there, err := e.inspectNetwork(ctx, n.Name)
	if errdefs.IsNotFound(err) {
		if err = e.makeNetwork(ctx, n); err == nil {
			there, err = e.inspectNetwork(ctx, n.Name) // another may have been quicker, or the answer lost
		}
	}
	if err != nil {
		return err
	}
	return fits(there, n)
}

func (e *stores) inspectNetwork(ctx context.Context, name string) (network.Inspect, error) {
	n, err := get(ctx, e.conn, e.lookAtNetwork, name)
	if err != nil && strings.Contains(err.Error(), "ambiguous") {
		if err = e.removeTwins(ctx, name); err == nil {
			n, err = get(ctx, e.conn, e.lookAtNetwork, name)
		}
	}
	if err == nil && n.Name != name { // the engine takes ids and their beginnings too
		err = errdefs.ErrNotFound
	}
	return n, about(err, "network %q", name)
}

func (e *stores) lookAtNetwork(ctx context.Context, nameOrID string) (network.Inspect, error) {
	return e.api.NetworkInspect(ctx, nameOrID, network.InspectOptions{})
}

// removeTwins leaves one of abl's networks of a name, the one that is used. An abl that was
// killed and the next one may both have made it, which engines before 25 allow, and by its
// name neither can be asked for any more.
func (e *stores) removeTwins(ctx context.Context, name string) error {
	ours := withLabels(map[string]string{sandbox.LabelProject: ""})
	ours.Add("name", name)
	found, err := get(ctx, e.conn, e.api.NetworkList, network.ListOptions{Filters: ours})
	if err != nil {
		return err
	}
	// The engine takes parts of a name too.
	twins := slices.DeleteFunc(found, func(n network.Summary) bool { return n.Name != name })
	left := len(twins)
	for _, n := range twins {
		if left > 1 && e.removeNetwork(ctx, n.ID) == nil { // an engine removes none that somebody is on
			left--
		}
	}
	return nil
}

func (e *stores) removeNetwork(ctx context.Context, id string) error {
	return e.do(ctx, long, func(ctx context.Context) error { return e.api.NetworkRemove(ctx, id) })
}

// HostAddress is the address at which this machine answers on a network: the
// bridge's own, which isolated networks do not have.
func (e *stores) HostAddress(ctx context.Context, name string) (netip.Addr, error) {
	n, err := e.inspectNetwork(ctx, name)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, c := range n.IPAM.Config {
		if addr, err := netip.ParseAddr(c.Gateway); err == nil && !n.Internal {
			return addr, nil
		}
		if p, err := netip.ParsePrefix(c.Subnet); err == nil && p.Addr().Is4() && !n.Internal {
			return p.Masked().Addr().Next(), nil // what an engine takes when it is not told
		}
	}
	return netip.Addr{}, fmt.Errorf("network %q has no address of this machine", name)
}

// fits compares what there is with what is wanted.
func fits(there network.Inspect, want sandbox.Network) error {
	switch {
	case there.Labels[sandbox.LabelProject] != want.Labels[sandbox.LabelProject]:
		return fmt.Errorf("one of this name exists and is not this project's: remove it with `docker network rm %s`", there.Name)
	case there.Driver != bridge || there.EnableIPv6 || there.Internal == want.Egress,
		!want.Egress && there.Options[inhibitIPv4] != "true" && there.Options[gatewayMode] != "isolated":
		return errors.New("one of this name exists and is isolated otherwise: remove it with `abl clean`")
	}
	return nil
}

// makeNetwork goes through the address ranges of the pool until the engine takes one:
// it knows its own, and others are taking them meanwhile. One of the name that is there by
// then is no error.
func (e *stores) makeNetwork(ctx context.Context, n sandbox.Network) error {
	info, err := e.Info(ctx)
	if err != nil {
		return err
	}
	var here []net.Addr // which the engine does not look at
	if info.Local {
		if here, err = net.InterfaceAddrs(); err != nil {
			return err
		}
	}
	all, err := subnets(n.Pool, n.Name, here)
	if err != nil {
		return err
	}
	for _, subnet := range all {
		err := e.do(ctx, short, func(ctx context.Context) error {
			_, err := e.api.NetworkCreate(ctx, n.Name, networkOptions(n, cmp.Or(n.Apart, info.Apart), subnet))
			return err
		})
		if err == nil || errdefs.IsConflict(err) {
			return nil
		}
		if !strings.Contains(strings.ToLower(err.Error()), "overlap") {
			return err
		}
	}
	return fmt.Errorf("address pool %q has no free /%d left: remove old networks with `abl clean` or choose another range",
		n.Pool, slice)
}

func networkOptions(n sandbox.Network, apart sandbox.Apart, subnet netip.Prefix) network.CreateOptions {
	o := network.CreateOptions{
		Driver: bridge, Internal: !n.Egress, EnableIPv6: new(false), Labels: n.Labels,
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet.String()}}},
	}
	switch {
	case n.Egress:
	case apart == sandbox.NoAddress:
		// "internal" keeps boxes from the world and not from the host, whose
		// services answer at the bridge's address; so the bridge gets none.
		o.Options = map[string]string{inhibitIPv4: "true"}
	default:
		o.Options = map[string]string{gatewayMode: "isolated"}
	}
	return o
}

// slice is the prefix length of one of abl's networks: 13 boxes and a gateway.
const slice = 28

// most is how many ranges are tried: more are not taken side by side.
const most = 64

// subnets lists the /28s of a pool in which this machine has no address. The list
// starts at a place drawn from the name, so that processes side by side seldom
// try for the same one.
func subnets(pool, name string, here []net.Addr) ([]netip.Prefix, error) {
	whole, err := netip.ParsePrefix(pool)
	if err != nil || !whole.Addr().Is4() || whole.Bits() > slice || whole.Bits() < 8 {
		return nil, fmt.Errorf("address pool %q: want an IPv4 range such as 10.213.0.0/16, at most a /%d", pool, slice)
	}
	base := whole.Masked().Addr().As4()
	count := uint32(1) << (slice - whole.Bits())
	hash := fnv.New32a()
	hash.Write([]byte(name))
	start := hash.Sum32() >> 1 // leaves room to count on
	var free []netip.Prefix
	for i := uint32(0); i < count && len(free) < most; i++ {
		var at [4]byte
		binary.BigEndian.PutUint32(at[:], binary.BigEndian.Uint32(base[:])+(start+i)%count<<(32-slice))
		p := netip.PrefixFrom(netip.AddrFrom4(at), slice)
		if !slices.ContainsFunc(here, func(a net.Addr) bool { return blocks(a, whole, p) }) {
			free = append(free, p)
		}
	}
	return free, nil
}

// blocks ignores a network that is wider than the pool, as a VPN's 10.0.0.0/8: it says
// nothing of a single /28, and the person chose the pool.
func blocks(a net.Addr, whole, p netip.Prefix) bool {
	own, err := netip.ParsePrefix(a.String())
	return err == nil && own.Bits() >= whole.Bits() && own.Overlaps(p)
}
