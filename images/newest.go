package images

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

const (
	registryTime = 30 * time.Second
	maxManifest  = 4 << 20 // bytes
)

var exactVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([.+-][0-9A-Za-z.+-]*)?$`)

// Newest asks the npm registry for the newest version of an agent's program.
func (m *Maker) Newest(ctx context.Context, agent string) (version string, err error) {
	name := pin{name: agentPackages[agent].name}.of(npmArch["amd64"]) // all architectures have the same versions
	name = regexp.MustCompile(`@[^/]*$`).ReplaceAllString(name, "")
	at := npmRegistry(m.Env) + "/" + url.PathEscape(name) + "/latest"
	pool, err := CACerts{Env: m.Env, Extra: m.CACert}.Pool()
	if err != nil {
		return "", fmt.Errorf("cannot ask the npm registry: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", fmt.Errorf("cannot ask the npm registry: %w", err)
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: pool}}}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("cannot ask the npm registry: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("cannot find the newest version of %s: the npm registry responds with %s", name,
			response.Status)
	}
	var manifest struct {
		Version string `json:"version"`
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxManifest))
	if err == nil {
		err = json.Unmarshal(data, &manifest)
	}
	if err == nil && !exactVersion.MatchString(manifest.Version) {
		err = fmt.Errorf("%.40q is not a version", manifest.Version)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the newest version of %s: %w", name, err)
	}
	return manifest.Version, nil
}
