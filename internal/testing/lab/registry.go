package lab

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Registry is an image registry on 127.0.0.1, which a local engine contacts without TLS. It
// requires a user and a password for every request.
type Registry struct {
	Host string // HOST:PORT

	t              testing.TB
	user, password string

	mu     sync.Mutex
	blobs  map[string]blob   // by digest
	tags   map[string]string // NAME:TAG to the digest of its manifest
	served []string          // NAME:TAG of each served manifest
	denied int
}

type blob struct {
	kind string
	data []byte
}

const (
	manifestKind = "application/vnd.docker.distribution.manifest.v2+json"
	configKind   = "application/vnd.docker.container.image.v1+json"
	layerKind    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// NewRegistry starts an empty registry.
func NewRegistry(t testing.TB, user, password string) *Registry {
	t.Helper()
	r := &Registry{t: t, user: user, password: password, blobs: map[string]blob{}, tags: map[string]string{}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.Host = strings.TrimPrefix(s.URL, "http://")
	return r
}

// Add stores an image with these executable files and returns its reference.
func (r *Registry) Add(name string, files map[string][]byte, argv ...string) string {
	r.t.Helper()
	var plain, packed bytes.Buffer
	w := tar.NewWriter(&plain)
	for path, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(data))}); err != nil {
			r.t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		r.t.Fatal(err)
	}
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(plain.Bytes()); err != nil {
		r.t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		r.t.Fatal(err)
	}
	layer := r.store(layerKind, packed.Bytes())
	config := r.store(configKind, r.json(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Cmd": argv},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(plain.Bytes())}},
	}))
	manifest := r.store(manifestKind, r.json(map[string]any{
		"schemaVersion": 2, "mediaType": manifestKind, "config": config, "layers": []any{layer},
	}))
	r.mu.Lock()
	r.tags[name+":1"] = manifest["digest"].(string)
	r.mu.Unlock()
	return r.Host + "/" + name + ":1"
}

func (r *Registry) json(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// store stores a blob and returns its descriptor.
func (r *Registry) store(kind string, data []byte) map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[digest(data)] = blob{kind, data}
	return map[string]any{"mediaType": kind, "size": len(data), "digest": digest(data)}
}

// Served returns NAME:TAG of each image whose manifest was served, in order, and the number of
// requests with missing or wrong credentials.
func (r *Registry) Served() (images []string, denied int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.served...), r.denied
}

// ServeHTTP implements the part of the registry API that engines use for a pull.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user, password, _ := q.BasicAuth(); user != r.user || password != r.password {
		r.denied++
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
		return
	}
	path := strings.TrimPrefix(q.URL.Path, "/v2/")
	name, ref, manifest := strings.Cut(path, "/manifests/")
	if !manifest {
		_, ref, _ = strings.Cut(path, "/blobs/")
	} else if sum, tagged := r.tags[name+":"+ref]; tagged {
		r.served = append(r.served, name+":"+ref)
		ref = sum
	}
	found, ok := r.blobs[ref]
	switch {
	case path == "":
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", found.kind)
		w.Header().Set("Docker-Content-Digest", ref)
		w.Header().Set("Content-Length", fmt.Sprint(len(found.data)))
		_, _ = w.Write(found.data)
	}
}
