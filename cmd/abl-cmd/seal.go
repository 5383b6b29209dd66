//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"unsafe"

	"abl/cmd/abl-cmd/internal/probe"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// sealNetwork drops all packets of this network namespace that are not for its own networks. The engine's
// host accepts datagrams from a bridge even if it has no address there: broadcasts, and those to its other
// addresses, since it answers ARP for them. Routes could not prevent that: a socket bound to an interface
// bypasses them. sealNetwork needs CAP_NET_ADMIN; without it no program can undo the rules.
func sealNetwork() error {
	loop, err := net.InterfaceByName("lo")
	networks, aerr := probe.Addresses()
	networks = slices.DeleteFunc(networks, func(p netip.Prefix) bool { return !p.Addr().Is4() })
	if err = errors.Join(err, aerr); err == nil {
		err = keepTo(loop.Index, networks)
	}
	if err != nil {
		return fmt.Errorf("cannot install the packet filter: %w (it needs nf_tables in the engine's kernel)", err)
	}
	if err := dropDefault(); err != nil {
		return fmt.Errorf("cannot remove the default route: %w", err)
	}
	return nil
}

// keepTo drops outgoing packets except on the loopback interface and to the networks. The kernel applies
// all rules or none.
func keepTo(loop int, networks []netip.Prefix) error {
	const atDestination, size = 16, 4 // of an IPv4 header
	var c nftables.Conn
	drop := nftables.ChainPolicyDrop
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "abl"})
	chain := c.AddChain(&nftables.Chain{
		Table:    table,
		Name:     "out",
		Type:     nftables.ChainTypeFilter,
		Policy:   &drop,
		Hooknum:  nftables.ChainHookOutput,
		Priority: nftables.ChainPriorityFilter,
	})
	allow := func(tests ...expr.Any) {
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(tests, &expr.Verdict{Kind: expr.VerdictAccept})})
	}
	allow(&expr.Meta{Key: expr.MetaKeyOIF, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: binary.NativeEndian.AppendUint32(nil, uint32(loop))})
	for _, n := range networks {
		at := n.Masked().Addr().As4()
		allow(&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: atDestination, Len: size},
			&expr.Bitwise{
				SourceRegister: 1,
				DestRegister:   1,
				Len:            size,
				Mask:           net.CIDRMask(n.Bits(), 8*size),
				Xor:            make([]byte, size),
			},
			&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: at[:]})
	}
	return c.Flush()
}

// dropDefault removes the default routes of this network namespace. No host is behind them, so a connection
// would wait for minutes.
func dropDefault() error {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	route := netlink.Message{ // linux/rtnetlink.h
		Header: netlink.Header{Type: unix.RTM_DELROUTE, Flags: netlink.Request | netlink.Acknowledge},
		Data:   []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, 0, unix.RT_SCOPE_NOWHERE, 0, 0, 0, 0, 0},
	}
	for err == nil { // each request removes one route
		_, err = c.Execute(route)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil // no default route is left
	}
	return err
}

// become switches to another user, given as "uid:gid", and drops all capabilities.
func become(user string) error {
	var uid, gid int
	_, _ = fmt.Sscanf(user, "%d:%d", &uid, &gid)
	if uid <= 0 || gid <= 0 || user != fmt.Sprintf("%d:%d", uid, gid) {
		return fmt.Errorf("user %q: want numbers \"uid:gid\", not root", user)
	}
	// The calls of package syscall apply to all threads. Changing all three uids from 0 clears the permitted
	// and effective capabilities.
	err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid))
	if err != nil {
		return fmt.Errorf("cannot become user %s: %w", user, err)
	}
	// Old engines set inheritable capabilities: clear these too.
	head, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET,
		uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	if errno != 0 {
		return fmt.Errorf("cannot drop capabilities: %w", errno)
	}
	return nil
}
