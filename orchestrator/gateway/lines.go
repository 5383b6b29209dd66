package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// longestLine bounds a line on standard input: certificates are in it.
const longestLine = 4 << 20

// lines reads standard input until it ends, which says nothing: whoever attached
// may come back. What is no line of text is passed over.
func lines(in io.Reader, to chan<- []byte) {
	defer close(to)
	r := bufio.NewReader(in)
	for {
		line, err := readLine(r)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			to <- line
		}
		if err != nil {
			return
		}
	}
}

// readLine reads up to a line break; of a line that is too long nothing is left.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > longestLine; long {
			line = []byte("too long")
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// decode reads one line strictly. What is wrong with it is told without its words,
// for they may be a key.
func decode(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err == nil {
		return nil
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("its member %q is of another type than expected", wrong.Field)
	}
	return fmt.Errorf("it is not the JSON that this gateway knows, from about byte %d on", d.InputOffset())
}

// what says which one member a command has.
func (c Command) what() (string, error) {
	all := map[string]bool{"call": c.Call != nil, "budget": c.Budget != nil, "stop": c.Stop}
	found := ""
	for _, name := range []string{"call", "budget", "stop"} {
		if !all[name] {
			continue
		}
		if found != "" {
			return "", errors.New("it is two commands in one")
		}
		found = name
	}
	if found == "" {
		return "", errors.New("it is no command")
	}
	return found, nil
}
