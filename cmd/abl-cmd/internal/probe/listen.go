//go:build linux

package probe

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"abl/internal/helper"
	"abl/internal/witness"
)

// Listen listens on all addresses of this machine until ctx ends. It sends a random word to each client
// and responds to datagrams with the word. It first prints a helper.Listening. For each line of in, it
// prints the line, the word and the number of datagrams with the word that have arrived.
func Listen(ctx context.Context, in io.Reader, out io.Writer) error {
	says := helper.Listening{Word: rand.Text()}
	var err error
	if says.Hosts, err = hosts(); err != nil {
		return err
	}
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", ":0")
	if err != nil {
		return err
	}
	defer tcp.Close()
	udp, err := lc.ListenPacket(ctx, "udp", ":0")
	if err != nil {
		return err
	}
	defer udp.Close()
	_, says.TCP, _ = net.SplitHostPort(tcp.Addr().String())
	_, says.UDP, _ = net.SplitHostPort(udp.LocalAddr().String())
	c := &counter{udp: udp, port: says.UDP, word: says.Word, mark: rand.Text(), marked: make(chan bool, 1)}
	go c.count()
	serving := make(chan error, 1)
	go func() {
		serving <- witness.Serve(ctx, tcp, func(_ context.Context, conn net.Conn) { _, _ = io.WriteString(conn, says.Word) })
	}()
	if err := reaches("localhost:"+says.TCP, says.Word); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(says); err != nil {
		return err
	}
	go c.report(in, out)
	return <-serving
}

// reaches checks that this machine itself receives the word. Otherwise silence would prove nothing.
func reaches(at, word string) error {
	conn, err := net.DialTimeout("tcp", at, talking)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(talking)); err != nil {
		return err
	}
	if got, err := io.ReadAll(io.LimitReader(conn, maxWord)); err != nil || string(got) != word {
		return fmt.Errorf("this machine receives %q from its own server: %w", got, err)
	}
	return nil
}

// counter counts datagrams with a word.
type counter struct {
	udp        net.PacketConn
	port       string
	word, mark string
	arrived    atomic.Int64
	marked     chan bool // receives a value when a datagram with mark arrives
}

// count counts the datagrams with the expected word and sends them back, until the socket is closed.
// It reports a datagram with the mark on c.marked.
func (c *counter) count() {
	buf := make([]byte, maxWord)
	for {
		n, from, err := c.udp.ReadFrom(buf)
		switch said := string(buf[:n]); {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // the error of one datagram
		case said == c.word:
			c.arrived.Add(1)
			_, _ = c.udp.WriteTo(buf[:n], from)
		case said == c.mark:
			c.marked <- true
		}
	}
}

// report prints each line of in with the number of datagrams. The sender of a datagram may get an error
// although it arrives. So report first sends a datagram of its own and waits for it: datagrams are read in
// order. Without a response of report, the caller fails.
func (c *counter) report(in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		conn, err := net.Dial("udp", "127.0.0.1:"+c.port)
		if err != nil {
			return
		}
		_, err = io.WriteString(conn, c.mark)
		conn.Close()
		if err != nil {
			return
		}
		<-c.marked
		fmt.Fprintln(out, lines.Text(), c.word, c.arrived.Load())
	}
}

// inside is the name of a container's first interface, the zone of link-local addresses.
const inside = "eth0"

// hosts returns this machine's addresses as a container would dial them.
func hosts() (all []string, err error) {
	own, err := Addresses()
	for _, p := range own {
		at := p.Addr().Unmap()
		if at.IsLinkLocalUnicast() && at.Is6() {
			at = at.WithZone(inside)
		}
		all = append(all, at.String())
	}
	slices.Sort(all)
	return slices.Compact(all), err
}
