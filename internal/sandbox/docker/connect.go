package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clicontext "github.com/docker/cli/cli/context"
	endpoint "github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"abl/internal/sandbox"
)

// oldest is the first API version with every option that the profile needs. Debian 12 ships an
// engine with this version.
const oldest = "1.41"

// connectTime is the maximum time for the first request.
const connectTime = 10 * time.Second

// Connect finds the engine like Docker's CLI (DOCKER_HOST, DOCKER_CONTEXT, the current context, the
// default socket) and pings it. If the engine does not respond, Connect returns
// sandbox.ErrUnreachable with the address and a hint.
func Connect(ctx context.Context, env func(string) string) (*Engine, error) {
	at, err := locate(env)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrUnreachable, err)
	}
	opts, err := at.ClientOpts()
	if !strings.HasPrefix(at.Host, "ssh:") { // there each connection is a process and a login
		opts = append(opts, dialEachTime)
	}
	var c *client.Client
	if err == nil {
		c, err = client.NewClientWithOpts(opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", sandbox.ErrUnreachable, at.Host, err)
	}
	e := newEngine(&conn{api: c, host: at.Host, pause: firstPause})
	e.logins = logins{dockerDir(env)}
	if err := e.greet(ctx, env("DOCKER_BUILDKIT")); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return e, nil
}

// dialEachTime disables keep-alives. An engine that shuts down closes its listener first, but over
// open connections it still reports containers as they fail.
func dialEachTime(c *client.Client) error {
	if t, ok := c.HTTPClient().Transport.(*http.Transport); ok {
		t.DisableKeepAlives = true
	}
	return nil
}

// greet checks that the engine responds with a supported API version, and whether it builds with
// BuildKit. wanted is the user's DOCKER_BUILDKIT.
func (e *conn) greet(ctx context.Context, wanted string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	pong, err := e.api.Ping(ctx)
	if err != nil {
		return unreachable(ctx, e.host, err)
	}
	if versions.LessThan(pong.APIVersion, oldest) {
		return fmt.Errorf("engine at %s has API version %q, want %s or later: update Docker to 20.10 or later",
			e.host, pong.APIVersion, oldest)
	}
	// Engines before 23 report a builder only if it is configured. All of them have BuildKit.
	e.buildKit = pong.BuilderVersion != build.BuilderV1
	if on, err := strconv.ParseBool(wanted); err == nil {
		e.buildKit = on
	}
	return nil
}

// locate returns the engine's address and credentials, in the order of Docker's CLI.
func locate(env func(string) string) (at endpoint.Endpoint, err error) {
	if host := env("DOCKER_HOST"); host != "" {
		return fromEnv(host, env)
	}
	dir := dockerDir(env)
	name := env("DOCKER_CONTEXT")
	if name == "" {
		if name, err = currentContext(filepath.Join(dir, "config.json")); err != nil {
			return at, err
		}
	}
	if name == "" || name == "default" {
		return fromEnv(client.DefaultDockerHost, env)
	}
	return fromStore(filepath.Join(dir, "contexts"), name)
}

// fromEnv adds the certificates in DOCKER_CERT_PATH to an address. Without DOCKER_TLS_VERIFY the
// client does not verify the engine's certificate.
func fromEnv(host string, env func(string) string) (endpoint.Endpoint, error) {
	at := endpoint.Endpoint{EndpointMeta: endpoint.EndpointMeta{Host: host}}
	dir := env("DOCKER_CERT_PATH")
	if dir == "" {
		return at, nil
	}
	tls, err := clicontext.TLSDataFromFiles(
		filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return at, fmt.Errorf("cannot read the certificates in DOCKER_CERT_PATH: %w", err)
	}
	at.TLSData, at.SkipTLSVerify = tls, env("DOCKER_TLS_VERIFY") == ""
	return at, nil
}

// currentContext returns the name that `docker context use` stored, "" by default.
func currentContext(path string) (string, error) {
	var file struct{ CurrentContext string }
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	return file.CurrentContext, about(err, "cannot read Docker's configuration %q", path)
}

// fromStore reads a context that `docker context create` created.
func fromStore(dir, name string) (at endpoint.Endpoint, err error) {
	defer func() {
		err = about(err, "cannot use Docker context %q (choose another with `docker context use`, or set DOCKER_HOST)", name)
	}()
	known := store.NewConfig(
		func() any { return &map[string]any{} },
		store.EndpointTypeGetter(endpoint.DockerEndpoint, func() any { return &endpoint.EndpointMeta{} }))
	contexts := store.New(dir, known)
	entry, err := contexts.GetMetadata(name)
	if err != nil {
		return at, err
	}
	meta, err := endpoint.EndpointFromContext(entry)
	if err != nil {
		return at, err
	}
	at, err = endpoint.WithTLSData(contexts, name, meta)
	at.Host = cmp.Or(at.Host, client.DefaultDockerHost)
	return at, err
}
