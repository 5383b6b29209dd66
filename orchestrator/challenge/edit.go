package challenge

import (
	"bytes"
	"math/big"
	"slices"
	"strconv"
)

// put is a document with a piece replaced.
func put(data []byte, s span, by []byte) []byte {
	return slices.Concat(data[:s.from], by, data[s.to:])
}

// The edits of a document. Each changes one place, and returns nil when there
// is none.

func dropFirst(data []byte, f found) []byte {
	switch f.object.n {
	case 0:
		return nil
	case 1:
		return put(data, f.object.first, nil)
	}
	return put(data, span{f.object.first.from, f.object.second}, nil)
}

func dropLast(data []byte, f found) []byte { return shorten(data, f.object, 2) }

// shorten drops the last part of a list that has at least so many.
func shorten(data []byte, l listed, least int) []byte {
	switch {
	case l.n < least || l.n == 0:
		return nil
	case l.n == 1:
		return put(data, l.last, nil)
	}
	return put(data, span{l.beside, l.last.to}, nil)
}

func shortArray(data []byte, f found) []byte { return shorten(data, f.array, 1) }

func longArray(data []byte, f found) []byte {
	if f.array.n == 0 {
		return nil
	}
	last := f.array.last
	return put(data, span{last.to, last.to}, slices.Concat([]byte(","), last.in(data)))
}

func swapArray(data []byte, f found) []byte {
	l := f.swap
	if l.n == 0 {
		return nil
	}
	first, last := bytes.Clone(l.first.in(data)), l.last.in(data)
	return put(put(data, l.last, first), l.first, last)
}

func changeNumber(data []byte, f found) []byte {
	if f.number.to == 0 {
		return nil
	}
	text := string(f.number.in(data))
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return put(data, f.number, n.Add(n, big.NewInt(1)).Append(nil, 10))
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n+1 == n {
		return nil
	}
	return put(data, f.number, strconv.AppendFloat(nil, n+1, 'f', -1, 64))
}

func changeText(data []byte, f found) []byte {
	if f.text.to == 0 {
		return nil
	}
	end := f.text.to - 1 // before the quotation mark
	return put(data, span{end, end}, []byte("x"))
}

func changeTruth(data []byte, f found) []byte {
	switch {
	case f.truth.to == 0:
		return nil
	case data[f.truth.from] == 't':
		return put(data, f.truth, []byte("false"))
	}
	return put(data, f.truth, []byte("true"))
}

func changeToNull(data []byte, f found) []byte {
	if f.scalar.to == 0 {
		return nil
	}
	return put(data, f.scalar, []byte("null"))
}
