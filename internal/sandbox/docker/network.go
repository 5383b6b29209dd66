package docker

import (
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
	gatewayMode  = "com.docker.network.bridge.gateway_mode_ipv4" // since API 1.48; older engines ignore it
	inhibitIPv4  = "com.docker.network.bridge.inhibit_ipv4"
	gatewayModes = "1.48"
)

// EnsureNetwork creates a network unless it exists. It fails if a network of this name belongs to
// another project or is not isolated as requested.
func (e *stores) EnsureNetwork(ctx context.Context, n sandbox.Network) (err error) {
	defer func() { err = about(err, "cannot create network %q", n.Name) }()
	e.making.Lock()
	defer e.making.Unlock()
	there, err := e.networkNamed(ctx, n.Name)
	if errdefs.IsNotFound(err) {
		if err = e.makeNetwork(ctx, n); err == nil {
			there, err = e.networkNamed(ctx, n.Name) // another abl may have created it, or the response was lost
		}
	}
	if err != nil {
		return err
	}
	return fits(there, n)
}

// networkNamed returns a network by its name. If several have the name, it removes all
// except one.
func (e *stores) networkNamed(ctx context.Context, name string) (network.Inspect, error) {
	n, err := get(ctx, e.conn, e.inspectNetwork, name)
	if err != nil && strings.Contains(err.Error(), "ambiguous") {
		if err = e.removeTwins(ctx, name); err == nil {
			n, err = get(ctx, e.conn, e.inspectNetwork, name)
		}
	}
	if err == nil && n.Name != name { // the engine also accepts ids and prefixes of ids
		err = errdefs.ErrNotFound
	}
	return n, about(err, "network %q", name)
}

func (e *stores) inspectNetwork(ctx context.Context, nameOrID string) (network.Inspect, error) {
	return e.api.NetworkInspect(ctx, nameOrID, network.InspectOptions{})
}

// removeTwins removes networks with the same name except for one, preferably the used one. Engines
// before 25 allow a killed abl and the next one to create both. Then the engine accepts neither by
// name.
func (e *stores) removeTwins(ctx context.Context, name string) error {
	ours := withLabels(map[string]string{sandbox.LabelProject: ""})
	ours.Add("name", name)
	found, err := get(ctx, e.conn, e.api.NetworkList, network.ListOptions{Filters: ours})
	if err != nil {
		return err
	}
	// The filter matches parts of a name, too.
	twins := slices.DeleteFunc(found, func(n network.Summary) bool { return n.Name != name })
	left := len(twins)
	for _, n := range twins {
		if left > 1 && e.removeNetwork(ctx, n.ID) == nil { // the engine does not remove a network in use
			left--
		}
	}
	return nil
}

func (e *stores) removeNetwork(ctx context.Context, id string) error {
	return e.do(ctx, long, func(ctx context.Context) error { return e.api.NetworkRemove(ctx, id) })
}

// fits reports how an existing network differs from the requested one.
func fits(there network.Inspect, want sandbox.Network) error {
	switch {
	case there.Labels[sandbox.LabelProject] != want.Labels[sandbox.LabelProject]:
		return fmt.Errorf("it exists, but does not belong to this project: remove it with `docker network rm %s`", there.Name)
	case there.Driver != bridge || there.EnableIPv6 || there.Internal == want.Egress,
		!want.Egress && there.Options[inhibitIPv4] != "true" && there.Options[gatewayMode] != "isolated":
		return errors.New("it exists, but with a different isolation: remove it with `abl clean`")
	}
	return nil
}

// makeNetwork tries the subnets of the pool until the engine accepts one. The engine detects
// conflicts with its networks, and other processes create some at the same time. It succeeds if the
// network exists by then.
func (e *stores) makeNetwork(ctx context.Context, n sandbox.Network) error {
	info, err := e.Info(ctx)
	if err != nil {
		return err
	}
	var here []net.Addr // the engine does not check these
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
			_, err := e.api.NetworkCreate(ctx, n.Name, networkOptions(n, info.Apart, subnet))
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
		Driver:     bridge,
		Internal:   !n.Egress,
		EnableIPv6: new(false),
		Labels:     n.Labels,
		IPAM:       &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet.String()}}},
	}
	switch {
	case n.Egress:
	case apart == sandbox.NoAddress:
		// "internal" isolates containers from the outside, but not from the host, whose
		// services listen on the bridge's address. So the bridge gets no address.
		o.Options = map[string]string{inhibitIPv4: "true"}
	default:
		o.Options = map[string]string{gatewayMode: "isolated"}
	}
	return o
}

// slice is the prefix length of abl's networks: 13 containers and a gateway.
const slice = 28

// maxSubnets is the maximum number of subnets that makeNetwork tries.
const maxSubnets = 64

// subnets lists the /28s of a pool in which this machine has no address. The list starts at a
// position that depends on the name, so that parallel processes rarely try the same subnet.
func subnets(pool, name string, here []net.Addr) ([]netip.Prefix, error) {
	whole, err := netip.ParsePrefix(pool)
	if err != nil || !whole.Addr().Is4() || whole.Bits() > slice || whole.Bits() < 8 {
		return nil, fmt.Errorf("address pool %q: want an IPv4 range such as 10.213.0.0/16, at most a /%d", pool, slice)
	}
	base := whole.Masked().Addr().As4()
	count := uint32(1) << (slice - whole.Bits())
	hash := fnv.New32a()
	hash.Write([]byte(name))
	start := hash.Sum32() >> 1 // start+i must not overflow
	var free []netip.Prefix
	for i := uint32(0); i < count && len(free) < maxSubnets; i++ {
		var at [4]byte
		binary.BigEndian.PutUint32(at[:], binary.BigEndian.Uint32(base[:])+(start+i)%count<<(32-slice))
		p := netip.PrefixFrom(netip.AddrFrom4(at), slice)
		if !slices.ContainsFunc(here, func(a net.Addr) bool { return blocks(a, whole, p) }) {
			free = append(free, p)
		}
	}
	return free, nil
}

// blocks reports whether an address of this machine is in a subnet. It ignores a network that is
// larger than the pool, such as a VPN's 10.0.0.0/8, because the user chose the pool.
func blocks(a net.Addr, whole, p netip.Prefix) bool {
	own, err := netip.ParsePrefix(a.String())
	return err == nil && own.Bits() >= whole.Bits() && own.Overlaps(p)
}
