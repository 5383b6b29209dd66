package holder

import "encoding/binary"

// The few words of the DNS protocol (RFC 1035, 4.1.1) that an answer without a
// record needs.
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

// Reply answers a DNS query with "no such name", and what is not a query with
// the matching refusal. It returns nil for a packet that is to stay unanswered:
// one too short to have an id, or an answer itself, which two responders would
// throw at each other for ever.
func Reply(query []byte) []byte {
	if len(query) < headerSize {
		return nil
	}
	flags := binary.BigEndian.Uint16(query[2:])
	if flags&flagResponse != 0 {
		return nil
	}
	code, question := codeNoName, question(query)
	switch {
	case flags&maskOpcode != 0:
		code, question = codeUnknown, nil
	case question == nil:
		code = codeFormat
	}
	reply := make([]byte, headerSize, headerSize+len(question))
	copy(reply, query[:2])
	flags = flagResponse | flagAvailable | flags&(maskOpcode|flagRecursion) | uint16(code)
	binary.BigEndian.PutUint16(reply[2:], flags)
	if question != nil {
		binary.BigEndian.PutUint16(reply[4:], 1)
	}
	return append(reply, question...)
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
