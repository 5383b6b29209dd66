package holder

import (
	"bytes"
	"encoding/binary"
	"strings"

	"abl/orchestrator/dirs"
)

// The few words of the DNS protocol (RFC 1035, 4.1.1) that an answer needs
// which has no record, or one that is always the same.
const (
	headerSize = 12
	maxName    = 255

	flagResponse  = 0x8000
	flagRecursion = 0x0100 // asked for
	flagAvailable = 0x0080
	maskOpcode    = 0x7800

	codeFormat  = 1
	codeNoName  = 3
	codeUnknown = 4 // an opcode that is no query
)

// own is the question for this resolver's own name, and record its answer: the
// same name, an address, for no time at all, 127.0.0.1.
var (
	own    = ownQuestion(dirs.HolderName)
	record = []byte("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\x7f\x00\x00\x01")
)

func ownQuestion(name string) []byte {
	var q []byte
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return append(q, 0, 0, 1, 0, 1)
}

// Reply answers a DNS query with "no such name", but for the name by which a
// probe knows this resolver, and what is not a query with the matching refusal.
// It returns nil for a packet that is to stay unanswered: one too short to have
// an id, or an answer itself, which two responders would throw at each other for
// ever.
func Reply(query []byte) []byte {
	if len(query) < headerSize {
		return nil
	}
	flags := binary.BigEndian.Uint16(query[2:])
	if flags&flagResponse != 0 {
		return nil
	}
	code, question := codeNoName, question(query)
	var answer []byte
	switch {
	case flags&maskOpcode != 0:
		code, question = codeUnknown, nil
	case question == nil:
		code = codeFormat
	case bytes.EqualFold(question, own):
		code, answer = 0, record
	}
	reply := make([]byte, headerSize, headerSize+len(question)+len(answer))
	copy(reply, query[:2])
	flags = flagResponse | flagAvailable | flags&(maskOpcode|flagRecursion) | uint16(code)
	binary.BigEndian.PutUint16(reply[2:], flags)
	if question != nil {
		binary.BigEndian.PutUint16(reply[4:], 1)
	}
	if answer != nil {
		binary.BigEndian.PutUint16(reply[6:], 1)
	}
	return append(append(reply, question...), answer...)
}

// question returns the bytes of the one question in a query, or nil when there
// is not one that is well-formed. Questions have no compressed names.
func question(query []byte) []byte {
	if binary.BigEndian.Uint16(query[4:]) != 1 {
		return nil
	}
	at := headerSize
	for {
		if at >= len(query) || at-headerSize >= maxName {
			return nil
		}
		n := int(query[at])
		at++
		if n == 0 {
			break
		}
		if n > 63 {
			return nil
		}
		at += n
	}
	if at-headerSize > maxName || at+4 > len(query) { // type and class follow
		return nil
	}
	return query[headerSize : at+4]
}
