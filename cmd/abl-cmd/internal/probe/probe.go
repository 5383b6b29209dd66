//go:build linux

// Package probe checks from inside a container whether the container is as abl configured it. It
// runs before any program of an agent, tries actions that must fail, and leaves no files.
// roles/boundary decides about the results.
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

// First runs the probe in a container's first program, before that starts anything. It checks the
// conditions in the file at path and writes the results as one line of JSON. Without a path it does
// nothing. It fails if a check fails or cannot be made, or if the results cannot be written.
func First(ctx context.Context, path string, out io.Writer) error {
	if path == "" {
		return nil
	}
	begun := time.Now()
	var found helper.Probed
	if spec, err := helper.Read[helper.ProbeSpec](path); err != nil {
		found.Error = fmt.Sprintf("cannot read the conditions of the probe: %v", err)
	} else {
		found = helper.Probed{Proof: Look(ctx, spec), MS: time.Since(begun).Milliseconds()}
	}
	if err := json.NewEncoder(out).Encode(found); err != nil {
		return fmt.Errorf("cannot write the results of the probe: %w", err)
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
	rest.Go(func() { net = Network(ctx, spec.Net) }) // waiting for silence takes longest
	who, _ := os.ReadFile("/proc/self/status")       // without it, the checks fail
	mounted, _ := os.ReadFile("/proc/self/mountinfo")
	proof = append(proof, status(string(who), spec.User)...)
	proof = append(proof, mounts(string(mounted), spec.Mounts)...)
	proof = append(proof, checkFiles(spec)...)
	proof = append(proof,
		environment(os.Environ(), spec.Env),
		sandbox.Same("system calls refused", "", calls()),
		sandbox.Same("memory of process 1", refused, firstMemory()))
	rest.Wait()
	return append(proof, net...)
}
