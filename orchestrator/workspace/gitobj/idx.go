package gitobj

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"slices"
)

const far = 1 << 31 // offsets from here on stand in a table of their own

// encodeIdx writes a pack index of version 2.
func encodeIdx(objects []packed, packSum Hash) []byte {
	slices.SortFunc(objects, func(a, b packed) int { return bytes.Compare(a.name[:], b.name[:]) })
	b := append(make([]byte, 0, 1100+28*len(objects)), "\xfftOc\x00\x00\x00\x02"...)
	b = appendFanout(b, objects)
	for _, o := range objects {
		b = append(b, o.name[:]...)
	}
	for _, o := range objects {
		b = binary.BigEndian.AppendUint32(b, o.crc)
	}
	b = appendOffsets(b, objects)
	b = append(b, packSum[:]...)
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

// appendFanout says for each first byte how many names do not go beyond it.
func appendFanout(b []byte, objects []packed) []byte {
	n := 0
	for first := range 256 {
		for n < len(objects) && int(objects[n].name[0]) == first {
			n++
		}
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func appendOffsets(b []byte, objects []packed) []byte {
	var large []byte
	for _, o := range objects {
		if o.offset < far {
			b = binary.BigEndian.AppendUint32(b, uint32(o.offset))
			continue
		}
		b = binary.BigEndian.AppendUint32(b, far|uint32(len(large)/8))
		large = binary.BigEndian.AppendUint64(large, uint64(o.offset))
	}
	return append(b, large...)
}
