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

// sealNetwork keeps every program of this network namespace to the machines of its own
// networks. An engine's host that has no address on a bridge takes datagrams from
// there all the same: those to everybody, and those to any other address of its own,
// for it answers who has that. A route could not hold them: a socket that names its
// interface passes routes by. It needs the right to administer the namespace, and
// whoever lacks it cannot undo it.
func sealNetwork() error {
	loop, err := net.InterfaceByName("lo")
	networks, aerr := probe.Addresses()
	networks = slices.DeleteFunc(networks, func(p netip.Prefix) bool { return !p.Addr().Is4() })
	if err = errors.Join(err, aerr); err == nil {
		err = keepTo(loop.Index, networks)
	}
	if err != nil {
		return fmt.Errorf("cannot close the network (does the engine's kernel have nf_tables?): %w", err)
	}
	if err := dropDefault(); err != nil {
		return fmt.Errorf("cannot take the default route away: %w", err)
	}
	return nil
}

// keepTo lets nothing leave but on the interface loop and to machines of the networks.
// The kernel takes all of it or nothing.
func keepTo(loop int, networks []netip.Prefix) error {
	const atDestination, size = 16, 4 // of an IPv4 header
	var c nftables.Conn
	drop := nftables.ChainPolicyDrop
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "abl"})
	chain := c.AddChain(&nftables.Chain{
		Table: table, Name: "out", Type: nftables.ChainTypeFilter, Policy: &drop,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter,
	})
	allow := func(tests ...expr.Any) {
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(tests, &expr.Verdict{Kind: expr.VerdictAccept})})
	}
	allow(&expr.Meta{Key: expr.MetaKeyOIF, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: binary.NativeEndian.AppendUint32(nil, uint32(loop))})
	for _, n := range networks {
		at := n.Masked().Addr().As4()
		allow(&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: atDestination, Len: size},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: net.CIDRMask(n.Bits(), 8*size), Xor: make([]byte, size)},
			&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: at[:]})
	}
	return c.Flush()
}

// dropDefault takes the default routes of this network namespace away: they lead to an
// address where nobody is, or are closed, and who tries one would wait for minutes.
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
	for err == nil { // it takes away one at a time
		_, err = c.Execute(route)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil // there is none any more
	}
	return err
}

// become goes on as another user, without a capability, for good. The user is
// given as "uid:gid".
func become(user string) error {
	var uid, gid int
	_, _ = fmt.Sscanf(user, "%d:%d", &uid, &gid)
	if uid <= 0 || gid <= 0 || user != fmt.Sprintf("%d:%d", uid, gid) {
		return fmt.Errorf("user %q: want \"uid:gid\" in numbers, and not root", user)
	}
	// Of package syscall, whose calls hold for all threads. To leave uid 0 with all three
	// is to give every capability up but those that only a program's file could turn on.
	err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid))
	if err != nil {
		return fmt.Errorf("cannot become user %s: %w", user, err)
	}
	// Those that an old engine gave to be inherited go as well; on success no thread has any.
	head, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET,
		uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	if errno != 0 {
		return fmt.Errorf("cannot give capabilities up: %w", errno)
	}
	return nil
}
