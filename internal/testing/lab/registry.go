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

// Registry is a registry of images on 127.0.0.1, to which an engine of this machine talks without
// TLS. It wants a user and a password for everything.
type Registry struct {
	Host string // HOST:PORT

	t              testing.TB
	user, password string

	mu     sync.Mutex
	blobs  map[string]blob   // by digest
	tags   map[string]string // NAME:TAG, the digest of its manifest
	served []string          // NAME:TAG of each manifest that was served
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

// NewRegistry starts a registry that is empty.
func NewRegistry(t testing.TB, user, password string) *Registry {
	t.Helper()
	r := &Registry{t: t, user: user, password: password, blobs: map[string]blob{}, tags: map[string]string{}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.Host = strings.TrimPrefix(s.URL, "http://")
	return r
}

// Add puts an image with these executable files into the registry and returns its reference.
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
	layer := r.keep(layerKind, packed.Bytes())
	config := r.keep(configKind, r.json(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Cmd": argv},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(plain.Bytes())}},
	}))
	manifest := r.keep(manifestKind, r.json(map[string]any{
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

// keep stores a blob and returns its descriptor.
func (r *Registry) keep(kind string, data []byte) map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[digest(data)] = blob{kind, data}
	return map[string]any{"mediaType": kind, "size": len(data), "digest": digest(data)}
}

// Served returns NAME:TAG of each image whose manifest was served, in their order, and how many
// requests had no or other credentials.
func (r *Registry) Served() (images []string, denied int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.served...), r.denied
}

// ServeHTTP answers as a registry does.
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
