package docker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// slice is the prefix length of one of abl's networks: 13 boxes and a gateway.
const slice = 28

// subnets lists the /28s of a pool that overlap with nothing taken. The list
// starts at a place drawn from the name, so that processes side by side seldom
// try for the same one.
func subnets(pool, name string, taken []netip.Prefix) ([]netip.Prefix, error) {
	whole, err := netip.ParsePrefix(pool)
	if err != nil || !whole.Addr().Is4() || whole.Bits() > slice || whole.Bits() < 8 {
		return nil, fmt.Errorf("address pool %q: want an IPv4 range such as 10.213.0.0/16, at most a /%d", pool, slice)
	}
	whole = whole.Masked()
	count := uint32(1) << (slice - whole.Bits())
	var free []netip.Prefix
	for i := range count {
		p := nth(whole, (startAt(name)+i)%count)
		if !blocked(p, whole, taken) {
			free = append(free, p)
		}
		if len(free) == 64 { // more than anybody retries
			break
		}
	}
	if len(free) == 0 {
		return nil, fmt.Errorf("address pool %q has no free /%d left: remove old networks with `abl clean` or choose another range", pool, slice)
	}
	return free, nil
}

func startAt(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32() >> 1 // leaves room to count on
}

func nth(whole netip.Prefix, i uint32) netip.Prefix {
	base := whole.Addr().As4()
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(base[:])+i<<(32-slice))
	return netip.PrefixFrom(netip.AddrFrom4(a), slice)
}

// blocked ignores a route that is wider than the pool, as a VPN's 10.0.0.0/8:
// it says nothing of a single /28, and the person chose the pool.
func blocked(p, whole netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.Bits() >= whole.Bits() && t.Overlaps(p) {
			return true
		}
	}
	return false
}

// routes reads the kernel's table in the form of /proc/net/route, whose
// numbers are little-endian words in hexadecimal.
func routes(table io.Reader) []netip.Prefix {
	var out []netip.Prefix
	for lines := bufio.NewScanner(table); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 8 {
			continue
		}
		to, err1 := strconv.ParseUint(field[1], 16, 32)
		mask, err2 := strconv.ParseUint(field[7], 16, 32)
		if err1 != nil || err2 != nil || mask == 0 {
			continue // the heading, or the default route
		}
		var a [4]byte
		binary.LittleEndian.PutUint32(a[:], uint32(to))
		out = append(out, netip.PrefixFrom(netip.AddrFrom4(a), bits.OnesCount64(mask)))
	}
	return out
}
