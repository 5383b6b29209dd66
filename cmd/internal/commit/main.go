package commit

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/strictyaml"
	"abl/orchestrator/ledger"
	"abl/roles"
)

// Main is the program code-commit without the process around it.
func Main(ctx context.Context, version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := Command("")
	root.Subs = append(root.Subs, cli.Completion("code-commit"))
	return cli.Main(ctx, cli.App{
		Name: "code-commit", Version: version, Usage: root.Usage, Code: rules().Code, Hint: hint,
		Flags: []cli.Flag{{Name: "project", Short: "C", Value: "DIR", Usage: "the project, when it is not the current directory"}},
		Root:  &root,
	}, args, stdin, stdout, stderr)
}

// rules say which exit code an error means that does not bring its own.
func rules() exit.Rules {
	return exit.Rules{
		exit.As[*ledger.Foreign](exit.Person),
		exit.Is(roles.ErrSource, exit.Person),
		exit.As[*strictyaml.Error](exit.Usage),
		exit.Is(images.ErrDockerfile, exit.Usage),
		exit.Is(sandbox.ErrWeak, exit.Boundary),
		exit.Is(sandbox.ErrUnproven, exit.Boundary),
		exit.Is(sandbox.ErrUnreachable, exit.Environment),
		exit.Is(hostfs.ErrNotRegular, exit.Usage),
		exit.Is(hostfs.ErrTooLarge, exit.Usage),
		exit.As[syscall.Errno](exit.Environment),
		exit.As[net.Error](exit.Environment),
	}
}

func hint(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "make room on the disk, then run the same command again"
	}
	return ""
}
