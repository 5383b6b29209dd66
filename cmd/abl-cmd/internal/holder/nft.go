//go:build linux

package holder

import (
	"encoding/binary"
	"math"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The kernel's packet filter is told by netlink messages in one batch, which it
// takes whole or not at all (Documentation/networking/netlink, linux/netfilter/
// nf_tables.h). Headers are in the machine's order, numbers within in the network's.
var order = binary.NativeEndian

const (
	table = "abl"
	chain = "out"

	atDestination = 16 // of an IPv4 header
	drop, accept  = 0, 1
)

// part is one message to the filter.
type part struct {
	kind, flags uint16
	body        [][]byte
}

// ruleset is the batch, and the number of its last message that is answered: all
// that leaves is dropped but what stays on the interface loop and what is for a
// machine of these networks.
func ruleset(loop int, networks []netip.Prefix) (batch []byte, last uint32) {
	hook := nest(unix.NFTA_CHAIN_HOOK, number(unix.NFTA_HOOK_HOOKNUM, unix.NF_INET_LOCAL_OUT), number(unix.NFTA_HOOK_PRIORITY, 0))
	parts := []part{
		{unix.NFT_MSG_NEWTABLE, 0, [][]byte{word(unix.NFTA_TABLE_NAME, table)}},
		{unix.NFT_MSG_NEWCHAIN, 0, [][]byte{word(unix.NFTA_CHAIN_TABLE, table), word(unix.NFTA_CHAIN_NAME, chain), hook, word(unix.NFTA_CHAIN_TYPE, "filter"), number(unix.NFTA_CHAIN_POLICY, drop)}},
		allow(expression("meta", number(unix.NFTA_META_DREG, unix.NFT_REG_1), number(unix.NFTA_META_KEY, unix.NFT_META_OIF)),
			equal(order.AppendUint32(nil, uint32(loop)))),
	}
	for _, n := range networks {
		at, mask := n.Masked().Addr().As4(), net.CIDRMask(n.Bits(), 32)
		none := []byte{0, 0, 0, 0}
		parts = append(parts, allow(
			expression("payload",
				number(unix.NFTA_PAYLOAD_DREG, unix.NFT_REG_1), number(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_NETWORK_HEADER),
				number(unix.NFTA_PAYLOAD_OFFSET, atDestination), number(unix.NFTA_PAYLOAD_LEN, uint32(len(at)))),
			expression("bitwise",
				number(unix.NFTA_BITWISE_SREG, unix.NFT_REG_1), number(unix.NFTA_BITWISE_DREG, unix.NFT_REG_1), number(unix.NFTA_BITWISE_LEN, uint32(len(at))),
				nest(unix.NFTA_BITWISE_MASK, attribute(unix.NFTA_DATA_VALUE, mask)), nest(unix.NFTA_BITWISE_XOR, attribute(unix.NFTA_DATA_VALUE, none))),
			equal(at[:])))
	}
	batch = message(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, 0)
	for _, p := range parts {
		last++
		batch = append(batch, message(unix.NFNL_SUBSYS_NFTABLES<<8|p.kind, unix.NLM_F_CREATE|unix.NLM_F_ACK|p.flags, unix.NFPROTO_IPV4, 0, last, p.body...)...)
	}
	return append(batch, message(unix.NFNL_MSG_BATCH_END, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, last+1)...), last
}

// allow is a rule that lets through what all tests hold for.
func allow(tests ...[]byte) part {
	rule := nest(unix.NFTA_RULE_EXPRESSIONS, append(tests, expression("immediate",
		number(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT),
		nest(unix.NFTA_IMMEDIATE_DATA, nest(unix.NFTA_DATA_VERDICT, number(unix.NFTA_VERDICT_CODE, accept)))))...)
	return part{unix.NFT_MSG_NEWRULE, unix.NLM_F_APPEND, [][]byte{word(unix.NFTA_RULE_TABLE, table), word(unix.NFTA_RULE_CHAIN, chain), rule}}
}

// equal is the test whether what was loaded is this.
func equal(value []byte) []byte {
	return expression("cmp",
		number(unix.NFTA_CMP_SREG, unix.NFT_REG_1), number(unix.NFTA_CMP_OP, unix.NFT_CMP_EQ),
		nest(unix.NFTA_CMP_DATA, attribute(unix.NFTA_DATA_VALUE, value)))
}

// message is one of the filter's, with its two headers.
func message(kind, flags uint16, family uint8, resource uint16, seq uint32, attributes ...[]byte) []byte {
	body := binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
	for _, a := range attributes {
		body = append(body, a...)
	}
	m := order.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	m = order.AppendUint16(order.AppendUint16(m, kind), flags|unix.NLM_F_REQUEST)
	m = order.AppendUint32(order.AppendUint32(m, seq), 0)
	return append(m, body...)
}

// attribute is a value behind its length and its kind, filled up to four bytes.
func attribute(kind uint16, value []byte) []byte {
	a := order.AppendUint16(nil, uint16(min(unix.NLA_HDRLEN+len(value), math.MaxUint16)))
	a = append(order.AppendUint16(a, kind), value...)
	return append(a, make([]byte, -len(a)&3)...)
}

func word(kind uint16, text string) []byte { return attribute(kind, append([]byte(text), 0)) }

func number(kind uint16, n uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, n))
}

func nest(kind uint16, attributes ...[]byte) []byte {
	var all []byte
	for _, a := range attributes {
		all = append(all, a...)
	}
	return attribute(kind|unix.NLA_F_NESTED, all)
}

func expression(name string, attributes ...[]byte) []byte {
	return nest(unix.NFTA_LIST_ELEM, word(unix.NFTA_EXPR_NAME, name), nest(unix.NFTA_EXPR_DATA, attributes...))
}
