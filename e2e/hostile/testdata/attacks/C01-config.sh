# Settings that make git run programs.
for k in core.fsmonitor core.hooksPath core.sshCommand core.pager core.editor core.worktree diff.external include.path alias.st credential.helper filter.x.clean gpg.program; do
  fails 'could not lock|Read-only|denied' git -c safe.directory='*' config --local $k ./evil; done
fails 'Read-only|denied' sh -c 'printf "[core]\n\tfsmonitor = ./evil\n" >> .git/config'
fails 'Read-only|denied' sh -c 'echo "* filter=x" > .git/info/attributes'
