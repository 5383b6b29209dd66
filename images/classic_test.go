package images

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckClassic(t *testing.T) {
	const top = "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\n"
	for name, c := range map[string]struct{ text, want string }{
		"plain": {top + "RUN echo --mount\nCOPY --chown=1:1 a /a\n", ""},
		"mount": {
			top + "RUN --mount=type=cache,target=/x make\n",
			"line 3: RUN --mount=type=cache,target=/x needs BuildKit",
		},
		"mount on its line": {
			top + "RUN \\\n  # a comment\n  --mount=type=bind \\\n  make\n",
			"line 5: RUN --mount=type=bind",
		},
		"lower case":          {top + "run --network=none make\n", "line 3: RUN --network=none"},
		"mount after options": {top + "RUN --network=default --mount=type=bind make\n", "line 3: RUN --network=default"},
		"chmod":               {top + "COPY --chmod=0755 a /a\n", "line 3: COPY --chmod=0755"},
		"heredoc":             {top + "COPY <<EOF /a\nx\nEOF\n", "line 3: COPY <<EOF"},
		"shell's redirection": {top + "RUN cat < a << b\n", ""},
		"architecture":        {top + "ARG TARGETARCH\n", "line 3: ARG TARGETARCH"},
		"with a default":      {top + "ARG TARGETARCH=amd64\nENV TARGETOS linux\n", ""},
		"in a comment":        {top + "# RUN --mount=type=cache\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkClassic(c.text)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestImagesOf(t *testing.T) {
	got := imagesOf("FROM ${ABL_IMAGE}\nfrom --platform=linux/amd64 one.corp/a:1 AS x\n" +
		"COPY --from=two.corp/b --chown=1 /a /b\nCOPY --from=$X a b\nRUN FROM x\n")
	if want := []string{"one.corp/a:1", "two.corp/b"}; !slices.Equal(got, want) {
		t.Errorf("got images %q, want %q", got, want)
	}
}
