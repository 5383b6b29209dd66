package setup

import (
	"context"
	"fmt"
	"slices"

	"abl/cmd/internal/project"
	"abl/internal/git"
)

// leastGit is the oldest version of git that abl works with.
var leastGit = []int{2, 30}

// checkGit checks the project's repository and the user's git. Without a repository it checks nothing.
func checkGit(ctx context.Context, s *project.Project) []finding {
	if s.Conf.Source.Repo == "" {
		return nil
	}
	if _, _, err := s.Origin(); err != nil {
		return []finding{failed("git", err)}
	}
	const hint = "install git 2.30 or newer"
	v, err := git.Version(ctx)
	if err != nil {
		return []finding{{What: "git", Text: err.Error(), Hint: hint}}
	}
	text := fmt.Sprintf("git %d.%d", v[0], v[1])
	if slices.Compare(v, leastGit) < 0 {
		return []finding{{What: "git", Text: text + " is too old to merge", Hint: hint}}
	}
	return []finding{good("git", text)}
}
