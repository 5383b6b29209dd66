package docker

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"

	"abl/internal/sandbox"
)

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestFollow(t *testing.T) {
	for name, c := range map[string]struct{ in, lines, err string }{
		"build": {`{"stream":"Step 1/2 : FROM x\n"}{"stream":"a"}{"stream":"b\nc"}{"aux":{"ID":"sha256:1"}}`, "Step 1/2 : FROM x|ab|c", ""},
		"bar":   {`{"stream":"10%\r20%\r\n"}`, "10%|20%", ""},
		"pull":  {`{"status":"Pulling from x"}{"status":"Downloading","id":"ab","progressDetail":{"current":1}}`, "Pulling from x|ab: Downloading", ""},
		"bytes": {`{"status":"Downloading","id":"a","progressDetail":{"current":1500000,"total":4000000}}{"status":"Downloading","id":"b","progressDetail":{"current":500000,"total":6000000}}{"status":"Pull complete","id":"a","progressDetail":{}}`,
			"a: Downloading 1.5 of 4.0 MB|b: Downloading 0.5 of 6.0 MB|a: Pull complete", ""},
		"error": {`{"stream":"half"}{"errorDetail":{"code":1,"message":"boom"},"error":"boom"}{"stream":"after"}`, "half", "boom"},
		"old":   {`{"error":"boom"}`, "", "boom"},
		"torn":  {`{"stream":"a\n"}{"str`, "a", "cannot read the engine's response"},
		"empty": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			b := &body{Reader: strings.NewReader(c.in)}
			err := follow(b, func(line string) { got = append(got, line) })
			if strings.Join(got, "|") != c.lines || !b.closed {
				t.Errorf("got lines %q, closed %t, want %q, closed", got, b.closed, c.lines)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("stream: got error %v, want %q", err, c.err)
			}
		})
	}
	if err := follow(&body{Reader: strings.NewReader(`{"stream":"a\n"}`)}, nil); err != nil {
		t.Errorf("stream without a listener: got error %v, want none", err)
	}
}

func TestFollowBoundsALineWithoutEnd(t *testing.T) {
	piece := `{"stream":"` + strings.Repeat("x", 1000) + `"}`
	longest, all := 0, 0
	err := follow(&body{Reader: strings.NewReader(strings.Repeat(piece, 500))}, func(line string) {
		longest, all = max(longest, len(line)), all+len(line)
	})
	if err != nil || longest > longLine+1000 || all != 500*1000 {
		t.Errorf("lines: got %d bytes in the longest, %d in all, error %v, want at most %d and exactly %d",
			longest, all, err, longLine+1000, 500*1000)
	}
}

func TestByReference(t *testing.T) {
	got, sizes := byReference([]image.Summary{
		{ID: "sha256:1", Size: 7, RepoTags: []string{"a:1", "b:2"}, Labels: map[string]string{"k": "1"}},
		{ID: "sha256:2", RepoTags: []string{"<none>:<none>"}, Labels: map[string]string{"k": "2"}},
		{ID: "sha256:3"},
	})
	if len(got) != 4 || got["a:1"]["k"] != "1" || got["b:2"]["k"] != "1" || got["sha256:2"]["k"] != "2" || got["sha256:3"] != nil || sizes["b:2"] != 7 {
		t.Errorf("got %v and %v, want the labels of a:1, b:2, sha256:2 and sha256:3, and 7 bytes for b:2", got, sizes)
	}
}

func FuzzFollow(f *testing.F) {
	f.Add([]byte(`{"stream":"a\rb\n"}{"status":"c","id":"d"}`))
	f.Add([]byte(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		err := follow(&body{Reader: bytes.NewReader(in)}, func(line string) {
			if line == "" {
				t.Errorf("lines of %q: got an empty one, want none", in)
			}
		})
		if bytes.Contains(in, []byte(`"error":"x"`)) && len(in) == len(`{"error":"x"}`) && err == nil {
			t.Errorf("stream %q: got no error, want one", in)
		}
	})
}

func oneFile(t *testing.T, name, text string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	_, werr := io.WriteString(tw, text)
	if err := errors.Join(err, werr, tw.Close()); err != nil {
		t.Fatal(err)
	}
	return &b
}

// An image is built, used as a base, listed, saved, removed and loaded.
func TestEngineImages(t *testing.T) {
	e := engine(t)
	ctx := t.Context()
	mark := strings.ToLower(rand.Text())
	base, built, label := "abl-test-docker/base:"+mark, "abl-test-docker/built:"+mark, "abl.test."+mark
	err := e.Build(ctx, oneFile(t, "Dockerfile", "FROM scratch\nCOPY Dockerfile /\nLABEL "+label+"=first abl.project=test-images\n"), sandbox.ImageBuild{Ref: base}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(e.RemoveImage(ctx, built), e.RemoveImage(ctx, base)); err != nil {
			t.Error(err)
		}
	}()
	var lines []string
	err = e.Build(ctx, oneFile(t, "Dockerfile", "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nARG WORD\nLABEL "+label+"=${WORD}\n"),
		sandbox.ImageBuild{Ref: built, Args: map[string]string{"ABL_IMAGE": base, "WORD": "built"}}, func(line string) { lines = append(lines, line) })
	if err != nil || !slices.Contains(lines, "Step 1/4 : ARG ABL_IMAGE") {
		t.Fatalf("build: got error %v and lines %q, want no error and %q", err, lines, "Step 1/4 : ARG ABL_IMAGE")
	}
	found, _, err := e.ListImages(ctx, label)
	if err != nil || len(found) != 2 || found[base][label] != "first" || found[built][label] != "built" {
		t.Errorf("labels of the images: got %v, error %v, want first of %s and built of %s", found, err, base, built)
	}
	id, ok, err := e.ImageID(ctx, built)
	if err != nil || !ok {
		t.Fatalf("ID of %s: got %q, found %v, error %v, want one", built, id, ok, err)
	}
	var file bytes.Buffer
	if err := e.SaveImages(ctx, &file, []string{base, built}); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{built, base, base} { // the second time there is nothing, and that is well
		if err := e.RemoveImage(ctx, ref); err != nil {
			t.Error(err)
		}
	}
	if _, ok, err := e.ImageID(ctx, built); ok || err != nil {
		t.Errorf("removed image %s: got found %v, error %v, want false and none", built, ok, err)
	}
	loaded, err := e.LoadImages(ctx, &file)
	slices.Sort(loaded)
	if err != nil || !slices.Equal(loaded, []string{base, built}) {
		t.Errorf("loaded images: got %q, error %v, want %q", loaded, err, []string{base, built})
	}
	if again, ok, err := e.ImageID(ctx, built); again != id || !ok || err != nil {
		t.Errorf("ID of the loaded image: got %s, found %v, error %v, want %s", again, ok, err, id)
	}
}

func TestEngineImageFailures(t *testing.T) {
	e := engine(t)
	ctx := t.Context()
	err := e.Build(ctx, oneFile(t, "Dockerfile", "FROM scratch\nCOPY away /\n"), sandbox.ImageBuild{Ref: "abl-test-docker/never:1"}, nil)
	if err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("build with a missing file: got error %v, want one with %q", err, "away")
	}
	if _, err := e.LoadImages(ctx, strings.NewReader("no archive")); err == nil {
		t.Error("load of an invalid archive: got no error, want one")
	}
	if err := e.SaveImages(ctx, io.Discard, []string{"abl-test-docker/never:1"}); err == nil {
		t.Error("save of a missing image: got no error, want one")
	}
}
