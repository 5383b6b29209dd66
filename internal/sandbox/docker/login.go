package docker

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	dockerconfig "github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/docker/api/types/registry"
)

const (
	hubDomain = "docker.io"                   // in references
	hubLogin  = "https://index.docker.io/v1/" // the name under which docker login stores Docker Hub
	hubHost   = "registry-1.docker.io"        // the name in BuildKit's requests

	helperTime = time.Minute // for a credential helper, which may ask the user to unlock a key store
)

// logins reads registry credentials from the user's Docker config and its credential helpers.
type logins struct{ dir string }

// dockerDir returns the directory of Docker's config.
func dockerDir(env func(string) string) string {
	return cmp.Or(env("DOCKER_CONFIG"), filepath.Join(env("HOME"), ".docker"))
}

// read calls ask with the config. It abandons a credential helper after helperTime.
func (l logins) read(ctx context.Context, ask func(*configfile.ConfigFile) error) error {
	done := make(chan error, 1)
	go func() {
		file, err := dockerconfig.Load(l.dir)
		if err == nil {
			err = ask(file)
		}
		done <- err
	}()
	late := time.NewTimer(helperTime)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("a credential helper did not respond within %s", helperTime)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// of returns the credentials for the host of a registry, or the zero value if the user has none.
func (l logins) of(ctx context.Context, host string) (found registry.AuthConfig, err error) {
	if host == hubDomain || host == hubHost {
		host = hubLogin
	}
	err = l.read(ctx, func(file *configfile.ConfigFile) error {
		auth, err := file.GetAuthConfig(host)
		found = registry.AuthConfig(auth)
		return err
	})
	if found.Username == "" && found.IdentityToken == "" && found.RegistryToken == "" {
		found = registry.AuthConfig{}
	}
	return found, about(err, "cannot read the credentials of %s in %s", host, filepath.Join(l.dir, "config.json"))
}

// forImages returns the credentials for the registries of images, by the names that the engine
// uses.
func (l logins) forImages(ctx context.Context, refs []string) (map[string]registry.AuthConfig, error) {
	all := map[string]registry.AuthConfig{}
	for _, ref := range refs {
		host, err := registryOf(ref)
		if err != nil {
			continue // a build stage, or a variable
		}
		auth, err := l.of(ctx, host)
		if err != nil {
			return all, err
		}
		if host == hubDomain {
			host = hubLogin
		}
		if auth != (registry.AuthConfig{}) {
			all[host] = auth
		}
	}
	return all, nil
}

// encoded returns the header with credentials, "" for the zero value.
func encoded(auth registry.AuthConfig) (string, error) {
	if auth == (registry.AuthConfig{}) {
		return "", nil
	}
	data, err := json.Marshal(auth)
	return base64.URLEncoding.EncodeToString(data), err
}

// registryOf returns the host of the registry in the reference of an image.
func registryOf(ref string) (string, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", err
	}
	return reference.Domain(named), nil
}

// refusals are parts of the errors of registries that reject the credentials.
var refusals = []string{
	"unauthorized", "denied", "no basic auth credentials", "authentication required", "401 Unauthorized", "403 Forbidden",
}

// unauthorized adds a hint to the error of a pull if the registry rejected it. had says whether
// credentials were sent. why is the error of the credential lookup.
func unauthorized(err error, host string, had bool, why error) error {
	refused := slices.ContainsFunc(refusals, func(word string) bool {
		return strings.Contains(strings.ToLower(err.Error()), strings.ToLower(word))
	})
	login := "docker login " + host
	if host == hubDomain {
		login = "docker login"
	}
	switch {
	case why != nil:
		return errors.Join(err, why)
	case refused && had:
		return fmt.Errorf("%w; the registry rejected your credentials: run `%s` again", err, login)
	case refused:
		return fmt.Errorf("%w; abl found no credentials for it: run `%s`", err, login)
	}
	return err
}
