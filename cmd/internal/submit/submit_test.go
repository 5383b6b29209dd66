package submit

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"abl/cmd/internal/exit"
)

// The template for Kubernetes has a rule for each exit code, and no code is in two rules.
func TestPodFailurePolicy(t *testing.T) {
	_, data, err := Template("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, rule := range regexp.MustCompile(`values: \[([0-9, ]+)\]`).FindAllStringSubmatch(string(data), -1) {
		for _, text := range strings.Split(rule[1], ", ") {
			code, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, code)
		}
	}
	want := []int{137} // SIGKILL
	for _, e := range exit.Entries() {
		if e.Code != exit.Passed {
			want = append(want, e.Code)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("exit codes in podFailurePolicy: got %v, want %v", got, want)
	}
}

func TestName(t *testing.T) {
	for _, c := range []struct {
		of   target
		want string
	}{
		{target{"https://example.com/Team/My_Shop.git", "main", "."}, `^abl-my-shop-[0-9a-f]{8}$`},
		{target{"git@example.com:shop.git", "main", "services/api"}, `^abl-[a-z-]*shop-api-[0-9a-f]{8}$`},
		{target{"/srv/" + strings.Repeat("long", 30), "main", "."}, `^abl-[a-z]{32}-[0-9a-f]{8}$`},
		{target{"/srv/ü", "main", "."}, `^abl--?[0-9a-f]{8}$`},
	} {
		t.Run(c.of.repository, func(t *testing.T) {
			if got := c.of.name(); !regexp.MustCompile(c.want).MatchString(got) {
				t.Errorf("got %q, want a match of %s", got, c.want)
			}
		})
	}
	one, two := target{"/srv/a", "main", "."}, target{"/srv/a", "release", "."}
	if one.name() == two.name() {
		t.Errorf("names of two branches: got %q twice, want two names", one.name())
	}
}
