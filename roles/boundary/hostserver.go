// Package boundary describes the containers and networks of a project, and proves that a container has
// no more access than its role. A rule says what a container may have, a probe inside checks it, and a
// listener on the engine's machine finds out which packets arrive there.
package boundary

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
	"abl/internal/sandbox"
)

// HostServer is a container with the network of the engine's machine. It listens on all addresses of
// the machine and sends a random word to each client. A container that receives the word, or whose
// datagram with the word arrives, reaches the machine.
type HostServer struct {
	helper.Listening
	Name   string
	Engine sandbox.Streams
}

// HostContainer makes the description of a tool's container that of a HostServer.
func HostContainer(container sandbox.ContainerConfig) sandbox.ContainerConfig {
	container.Argv = []string{helper.Bin + "/" + helper.HelperProbe, "--deadline", container.Labels[sandbox.LabelDeadline], "listen"}
	container.Reach, container.Stdin = sandbox.Reach{Host: true}, true
	return container
}

// ReadHostServer returns the server of a container with the first line of its output.
func ReadHostServer(engine sandbox.Streams, name string, line []byte) (*HostServer, error) {
	b := &HostServer{Name: name, Engine: engine}
	if err := json.Unmarshal(line, &b.Listening); err != nil || b.Word == "" || b.TCP == "" || b.UDP == "" {
		return nil, fmt.Errorf("%w: the listener on the engine's machine printed %q", sandbox.ErrUnproven, line)
	}
	return b, nil
}

const (
	arrived = "datagrams that arrived"
	reply   = 30 * time.Second      // after which the server does not respond
	pause   = 10 * time.Millisecond // between two looks at its log
)

// Arrived checks that no datagram with the word has arrived.
func (b *HostServer) Arrived(ctx context.Context) sandbox.Check {
	ctx, cancel := context.WithTimeout(ctx, reply)
	defer cancel()
	mark := rand.Text()
	begin := []byte(mark + " " + b.Word + " ") // a later server of this name has another word
	err := b.Engine.Feed(ctx, b.Name, []byte(mark+"\n"))
	for err == nil {
		var log []byte
		if log, err = b.Engine.Logs(ctx, b.Name, maxLine); err != nil {
			break
		}
		_, rest, _ := bytes.Cut(log, begin)
		if count, _, whole := bytes.Cut(rest, []byte("\n")); whole {
			return sandbox.Same(arrived, "0", string(count))
		}
		err = proc.Pause(ctx, pause)
	}
	return sandbox.Same(arrived, "0", "unknown: "+err.Error())
}

// At returns the addresses of the engine's machine with a port.
func (b *HostServer) At(port string) (all []string) {
	for _, host := range b.Hosts {
		all = append(all, net.JoinHostPort(host, port))
	}
	return all
}
