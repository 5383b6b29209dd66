package git

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/proc"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Identity describes the author and the signature of commits in a workspace. The zero value is abl
// <abl@localhost>.
type Identity struct {
	Author   Person
	Trailers []string // lines after abl's trailers, such as "Signed-off-by: NAME <EMAIL>"
	Signing  *Signing // nil for unsigned commits
}

// Person is a name and an e-mail address.
type Person struct{ Name, Email string }

func (p Person) String() string { return p.Name + " <" + p.Email + ">" }

// ParsePerson parses NAME <EMAIL>.
func ParsePerson(text string) Person {
	name, email, _ := strings.Cut(text, "<")
	return Person{strings.TrimSpace(name), strings.TrimSuffix(strings.TrimSpace(email), ">")}
}

var ablItself = Person{"abl", "abl@localhost"}

func (p Person) signature(when time.Time) object.Signature {
	if p == (Person{}) {
		p = ablItself
	}
	return object.Signature{Name: p.Name, Email: p.Email, When: when}
}

// Signing is how the user's git signs commits.
type Signing struct {
	Committer Person // owner of the key
	Format    string // gpg.format, "" for git's default
	Key       string // user.signingkey, "" for the committer's key
}

// User returns the user's name and e-mail address from git's settings. It returns false if one is
// missing.
func (o *Origin) User(ctx context.Context) (p Person, ok bool) {
	p = Person{o.setting(ctx, "user.name"), o.setting(ctx, "user.email")}
	return p, p.Name != "" && p.Email != "" && !strings.ContainsAny(p.Name+p.Email, "<>\n")
}

// Signing returns how to sign commits, nil if the user's commit.gpgsign is not set. It ignores
// signing programs that the repository configures.
func (o *Origin) Signing(ctx context.Context) *Signing {
	if o.setting(ctx, "commit.gpgsign", "--type=bool") != "true" {
		return nil
	}
	who, ok := o.User(ctx)
	if !ok {
		who = ablItself
	}
	return &Signing{Committer: who, Format: o.setting(ctx, "gpg.format"), Key: o.setting(ctx, "user.signingkey")}
}

// setting returns a setting of git, "" if it is not set.
func (o *Origin) setting(ctx context.Context, name string, args ...string) string {
	out, err := o.run(ctx, append(append([]string{"config"}, args...), "--get", name)...)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// CheckSigning fails if git cannot sign a commit without asking the user.
func (r *Repo) CheckSigning(ctx context.Context) error {
	if r.opts.Identity.Signing == nil {
		return nil
	}
	objects, err := newSpool(&r.repository, r.opts.Identity)
	if err != nil {
		return err
	}
	defer objects.close()
	_, _, err = objects.commit(ctx, "a trial\n", nil, nil)
	return err
}

// signTime is the maximum time for a signature. A program that asks for a passphrase would wait
// forever.
const signTime = time.Minute

// signed adds a commit with the signature of the user's git. git runs in a scratch repository with
// the user's settings and without those of the repository.
func (s *spool) signed(ctx context.Context, c *object.Commit) (*object.Commit, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, signTime, fmt.Errorf("git did not sign within %v", signTime))
	defer cancel()
	git, err := newScratch(ctx, s.in.git, s.in)
	if err != nil {
		return nil, err
	}
	defer git.close()
	if tree, is := s.all[c.TreeHash]; is {
		in, err := tree.Reader()
		if err != nil {
			return nil, err
		}
		cmd := git.command(ctx, "hash-object", "-t", "tree", "-w", "--stdin")
		cmd.Stdin = in
		if _, err := output(cmd); err != nil {
			return nil, err
		}
	}
	made, err := output(git.signer(ctx, s.by.Signing, c))
	if err != nil {
		return nil, gitdir.Foreign("git cannot sign a commit although commit.gpgsign is set (%v): unlock the key, or "+
			"run git config commit.gpgsign false", err)
	}
	data, err := git.run(ctx, "cat-file", "commit", strings.TrimSpace(string(made)))
	if err != nil {
		return nil, err
	}
	var raw plumbing.MemoryObject
	raw.SetType(plumbing.CommitObject)
	raw.Write([]byte(data))
	signed := new(object.Commit)
	if err := signed.Decode(&raw); err != nil {
		return nil, err
	}
	return signed, s.put(&raw)
}

// signer returns the git command that creates a signed copy of a commit.
func (s *scratch) signer(ctx context.Context, signing *Signing, c *object.Commit) *exec.Cmd {
	var args []string
	for _, set := range [][2]string{{"gpg.format", signing.Format}, {"user.signingkey", signing.Key}} {
		if set[1] != "" {
			args = append(args, "-c", set[0]+"="+set[1])
		}
	}
	args = append(args, "commit-tree", "-S")
	for _, parent := range c.ParentHashes {
		args = append(args, "-p", parent.String())
	}
	cmd := proc.Git(ctx, s.work, append(args, c.TreeHash.String())...)
	when := fmt.Sprintf("%d %s", c.Author.When.Unix(), c.Author.When.Format("-0700"))
	cmd.Env = append(cmd.Env, "GIT_DIR="+s.dir, "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_AUTHOR_NAME="+c.Author.Name, "GIT_AUTHOR_EMAIL="+c.Author.Email, "GIT_AUTHOR_DATE="+when,
		"GIT_COMMITTER_NAME="+signing.Committer.Name, "GIT_COMMITTER_EMAIL="+signing.Committer.Email,
		"GIT_COMMITTER_DATE="+when)
	cmd.Stdin = strings.NewReader(c.Message)
	return cmd
}

// text returns the text of a message with the trailers of the identity.
func (i Identity) text(m Message) (string, error) {
	text, err := m.text()
	if err != nil || len(i.Trailers) == 0 {
		return text, err
	}
	if m.Call == "" {
		text += "\n"
	}
	return text + strings.Join(i.Trailers, "\n") + "\n", nil
}
