//go:build linux

// Package probe looks, from inside a container, whether the container is what
// abl meant it to be. It runs before anything of an agent's does, tries what
// must not work, and leaves nothing behind. What was found is judged by roles/boundary.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// First is what a container's first program does before it starts anything: it
// looks whether what the file at path says holds, and writes what it found as one
// line of JSON. Without a path it does nothing. The error is that something does
// not hold, or could not be looked at or told.
func First(ctx context.Context, path string, out io.Writer) error {
	if path == "" {
		return nil
	}
	begun := time.Now()
	var found helper.Probed
	if spec, err := helper.Read[helper.ProbeSpec](path); err != nil {
		found.Error = fmt.Sprintf("cannot read what to look for: %v", err)
	} else {
		found = helper.Probed{Proof: Look(ctx, spec), MS: time.Since(begun).Milliseconds()}
	}
	if err := json.NewEncoder(out).Encode(found); err != nil {
		return fmt.Errorf("cannot say what the probe found: %w", err)
	}
	if found.Error != "" {
		return errors.New(found.Error)
	}
	return found.Proof.Err()
}

// Look runs the checks of the spec, and the checks of every container of abl.
func Look(ctx context.Context, spec helper.ProbeSpec) sandbox.Proof {
	proof := sandbox.Proof{sandbox.Same("open files", "", openFiles())} // before anything here opens more
	var net sandbox.Proof
	var rest sync.WaitGroup
	rest.Go(func() { net = Network(ctx, spec.Net) }) // it takes longest, for silence takes time
	who, _ := os.ReadFile("/proc/self/status")       // of what cannot be read nothing holds
	mounted, _ := os.ReadFile("/proc/self/mountinfo")
	proof = append(proof, status(string(who), spec.User)...)
	proof = append(proof, mounts(string(mounted), spec.Mounts)...)
	proof = append(proof, places(spec)...)
	proof = append(proof,
		environment(os.Environ(), spec.Env),
		sandbox.Same("system calls refused", "", calls()),
		sandbox.Same("memory of process 1", refused, firstMemory()))
	rest.Wait()
	return append(proof, net...)
}
