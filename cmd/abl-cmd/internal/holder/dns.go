//go:build linux

package holder

import (
	"bytes"
	"encoding/binary"
	"strings"

	"abl/internal/helper"

	"golang.org/x/net/dns/dnsmessage"
)

// Reply answers a DNS query with "no such name", but for the name by which a
// probe knows this resolver, and what is not a query with the matching refusal.
// It returns nil for a packet that is to stay unanswered: one too short to have
// an id, or an answer itself, which two responders would throw at each other for
// ever.
func Reply(query []byte) []byte {
	var p dnsmessage.Parser
	asked, err := p.Start(query)
	if err != nil || asked.Response {
		return nil
	}
	reply := dnsmessage.Message{Header: dnsmessage.Header{
		ID: asked.ID, Response: true, OpCode: asked.OpCode, RecursionDesired: asked.RecursionDesired, RecursionAvailable: true, RCode: dnsmessage.RCodeNameError,
	}}
	var q dnsmessage.Question
	one := binary.BigEndian.Uint16(query[4:]) == 1 // more are not even parsed: they may be thousands
	if one {
		if q, err = p.Question(); err == nil { // a name that points elsewhere would come back longer
			var bare []byte
			bare, err = (&dnsmessage.Message{Questions: []dnsmessage.Question{q}}).Pack()
			one = err == nil && bytes.HasPrefix(query[12:], bare[12:])
		}
	}
	switch {
	case asked.OpCode != 0:
		reply.RCode = dnsmessage.RCodeNotImplemented
	case err != nil || !one:
		reply.RCode = dnsmessage.RCodeFormatError
	default:
		reply.Questions = []dnsmessage.Question{q}
		if strings.EqualFold(q.Name.String(), helper.HolderName+".") && q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET {
			reply.RCode = dnsmessage.RCodeSuccess
			head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class} // for no time at all
			reply.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
